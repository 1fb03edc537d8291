"""How the baselines learn. Imports nothing heavy: the command line reads it.

Defaults are the paper's where it gives a number, and otherwise those of each method's
own code.
"""

from dataclasses import dataclass

from plato.configuration import whole_number
from plato.errors import PlatoError


@dataclass(frozen=True)
class DicgLearning:
    """How DICG learns: PPO on joint actions."""

    games: int = 12
    """Games played side by side: 1,200 steps an update, the paper's batch of 1,024 in
    whole episodes."""
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

    def __post_init__(self) -> None:
        for name in ("games", "steps", "updates", "epochs", "minibatches"):
            whole_number(name, getattr(self, name), 1)
        if self.games % self.minibatches:
            raise PlatoError(
                f"minibatches={self.minibatches} does not divide the {self.games} "
                f"games of a rollout; choose a divisor."
            )
