"""How the baselines learn. Imports nothing heavy: the command line reads it.

Defaults are the paper's where it gives a number, and otherwise those of each method's
own code. All train on 1.2 million steps, the one budget of the comparison, in minutes:
so the methods that remember play more steps to a gradient step than their codes do, and
what these count in steps (memory, exploration) is stretched alike.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from plato.configuration import divisor, real_number, whole_number
from plato.errors import PlatoError
from plato.learners.budget import Budget

Choice: TypeAlias = Literal["soft", "hard"]


@dataclass(frozen=True)
class DicgLearning(Budget):
    """How DICG learns: PPO on joint actions."""

    games: int = 12
    """Games played side by side: 1,200 steps an update, the paper's batch of 1,024
    rounded up to the length of whole episodes."""
    steps: int = 100
    """Steps of each game between two updates."""
    updates: int = 1000
    """Rollouts, each followed by an update."""
    epochs: int = 10
    """Passes over each rollout."""
    minibatches: int = 3
    """Gradient steps in a pass, each on some of the games."""
    gamma: float = 0.99
    """Discount."""
    lam: float = 0.97
    """GAE's lambda."""
    clip: float = 0.2
    """PPO's clip range, for the joint ratio."""
    entropy: float = 0.02
    """Weight of the entropy bonus."""
    rate: float = 1e-4
    """Learning rate of policy and critic."""
    max_norm: float = 10.0
    """Norm to which the policy's gradient is clipped."""
    adam_epsilon: float = 1e-5
    """Adam's epsilon, added to what it divides by, which may be 0."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("epochs", "minibatches"):
            whole_number(name, getattr(self, name), 1)
        for name in ("gamma", "lam"):
            real_number(name, getattr(self, name), most=1)
        for name in ("entropy", "rate"):
            real_number(name, getattr(self, name))
        for name in ("clip", "max_norm", "adam_epsilon"):
            real_number(name, getattr(self, name), above=True)
        divisor("minibatches", self.minibatches, self.games, "games of a rollout")


@dataclass(frozen=True)
class DgnLearning(Budget):
    """How DGN learns: Q-learning from a replay memory."""

    games: int = 48
    """Games played side by side."""
    steps: int = 25
    """Steps of each game between two updates."""
    updates: int = 1000
    """Rounds of playing and learning."""
    gradients: int = 6
    """Gradient steps in a round: one for two episodes, or five samples of each step."""
    batch: int = 1024
    """Transitions in a gradient step."""
    memory: int = 100_000
    """Transitions to remember."""
    warm_up: int = 10_000
    """Steps to play before anything is learned."""
    gamma: float = 0.99
    """Discount."""
    epsilon: float = 0.9
    """Chance of a random action until the warm-up is over."""
    epsilon_end: float = 0.02
    """The same in the end."""
    epsilon_fall: float = 0.5
    """Part of the training in which it falls."""
    relation: float = 0.03
    """Weight of the temporal relation regulariser."""
    target_rate: float = 0.04
    """How far the target follows with every gradient step."""
    rate: float = 5e-3
    """Learning rate."""
    max_norm: float = 10.0
    """Norm to which the gradient is clipped."""
    rmsprop_epsilon: float = 1e-5
    """RMSprop's epsilon, added to what it divides by, which may be 0."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("gradients", "batch"):
            whole_number(name, getattr(self, name), 1)
        for name in ("gamma", "epsilon", "epsilon_end"):
            real_number(name, getattr(self, name), most=1)
        for name in ("epsilon_fall", "target_rate"):
            real_number(name, getattr(self, name), most=1, above=True)
        for name in ("relation", "rate"):
            real_number(name, getattr(self, name))
        for name in ("max_norm", "rmsprop_epsilon"):
            real_number(name, getattr(self, name), above=True)
        whole_number("memory", self.memory, self.games * self.steps)
        check_warm_up(self, self.warm_up)


@dataclass(frozen=True)
class MohitoLearning(Budget):
    """How MOHITO learns: deterministic actors and critics from a replay memory."""

    games: int = 24
    """Games played side by side."""
    steps: int = 10
    """Steps of each game between two updates."""
    updates: int = 5000
    """Rounds of playing and learning."""
    gradients: int = 4
    """Gradient steps in a round: one for 60 steps played."""
    batch: int = 16
    """Transitions in a gradient step."""
    memory: int = 60_000
    """Transitions to remember: for 1,000 gradient steps."""
    warm_up: int = 6000
    """Steps to play before anything is learned."""
    gamma: float = 0.99
    """Discount."""
    epsilon: float = 0.9
    """Chance of a random action in the beginning."""
    epsilon_life: float = 60_000.0
    """Steps in which it falls to 1/e: by a thousandth with every gradient step."""
    epsilon_end: float = 0.001
    """What it does not fall below."""
    target_rate: float = 0.005
    """How far the targets follow when they move."""
    target_every: int = 16
    """Gradient steps from one move of the targets to the next."""
    choice: Choice = "soft"
    """Of an actor as it is taught: all of its hyperedges, weighed by a softmax of the
    sums it takes them by (soft), or the one it would take (hard)."""
    actor_rate: float = 1e-4
    """Learning rate of the actors."""
    critic_rate: float = 5e-4
    """Learning rate of the critics."""
    max_norm: float = 1.0
    """Norm to which the gradient of each network is clipped."""
    adam_epsilon: float = 1e-8
    """Adam's epsilon, added to what it divides by, which may be 0."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("gradients", "batch", "target_every"):
            whole_number(name, getattr(self, name), 1)
        for name in ("gamma", "epsilon", "epsilon_end"):
            real_number(name, getattr(self, name), most=1)
        real_number("target_rate", self.target_rate, most=1, above=True)
        for name in ("actor_rate", "critic_rate"):
            real_number(name, getattr(self, name))
        for name in ("epsilon_life", "max_norm", "adam_epsilon"):
            real_number(name, getattr(self, name), above=True)
        whole_number("memory", self.memory, self.games * self.steps)
        check_warm_up(self, self.warm_up)


def check_warm_up(budget: Budget, warm_up: int) -> None:
    """Refuses a training that is over before it has begun to learn."""
    whole_number("warm_up", warm_up, 0)
    steps = budget.updates * budget.games * budget.steps
    if warm_up > steps:
        raise PlatoError(
            f"warm_up={warm_up} steps are more than the {steps} that are played in "
            f"all: nothing would be learned; lower it, or train longer."
        )
