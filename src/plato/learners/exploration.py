"""Learning from a memory: policies that stray, what is remembered, and the loop.

What is learned, and how a gradient step is made, is each method's own.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from plato.game import Game, Observation, select
from plato.learners.baseline_configs import DgnLearning, MohitoLearning
from plato.learners.replay import Replay, Transition
from plato.learners.rollout import Experience, Stage, rollout, set_the_stage
from plato.masking import sample
from plato.policies.policy import Policy


class Explorer(eqx.Module):
    """A policy, but each agent does anything it may with a chance of epsilon.

    Anything that the policy knows: of what is cut off it has nothing to learn.
    """

    policy: Policy[None]
    epsilon: Float[Array, ""]

    def start(self, agents: int) -> None:
        return self.policy.start(agents)

    def explore(
        self, key: PRNGKeyArray, observation: Observation, memory: None
    ) -> tuple[Int[Array, " agent"], None, None]:
        k_whether, k_what = jax.random.split(key)
        best, _ = self.policy.act(key, observation, memory)
        count = best.shape[0]
        known = self.policy.known(observation).astype(jnp.float32)
        anything = sample(known, jax.random.uniform(k_what, (count,)))
        strays = jax.random.uniform(k_whether, (count,)) < self.epsilon
        return jnp.where(strays, anything, best), None, None


def transitions(experience: Experience) -> Transition:
    """All steps of a rollout, one after the other."""
    many = Transition(
        observation=experience.observation,
        actions=experience.actions,
        reward=experience.reward,
        following=experience.final_observation,
        discount=1.0 - experience.terminated.astype(jnp.float32),
    )
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), many)


class MemoryLearner(eqx.Module):
    """Everything an update changes."""

    taught: Any
    """What gradient steps change: networks, their targets, optimisers."""
    replay: Replay
    stage: Stage
    update: Int[Array, ""]

    @classmethod
    def create(
        cls,
        taught: Any,
        policy: Policy[None],
        games: Game[Any, Any],
        places: int,
        game_key: PRNGKeyArray,
    ) -> "MemoryLearner":
        """One with room to remember so many transitions, and none of them yet."""
        player = Explorer(policy, jnp.ones(()))
        stage = set_the_stage(games, player, game_key)

        def one_step() -> Transition:
            _, step = rollout(games, player, stage, jax.random.key(0), 1)
            return jax.tree.map(lambda leaf: leaf[0], transitions(step))

        replay = Replay.create(jax.eval_shape(one_step), places)
        return cls(taught, replay, stage, jnp.zeros((), jnp.int32))


GradientStep = Callable[[Replay, Any, PRNGKeyArray], tuple[Any, dict[str, Array]]]
"""(memory, what is taught, key) to what is taught after it, and metrics."""


def play_and_learn(
    config: DgnLearning | MohitoLearning,
    games: Game[Any, Any],
    learner: MemoryLearner,
    player: Explorer,
    gradient_step: GradientStep,
    key: PRNGKeyArray,
    game_key: PRNGKeyArray,
) -> tuple[MemoryLearner, dict[str, Array]]:
    """Some steps of all games, and the gradient steps that go with them."""
    number = learner.update
    stage, experience = rollout(
        games,
        player,
        learner.stage,
        jax.random.fold_in(game_key, number),
        config.steps,
    )
    replay = learner.replay.add(transitions(experience))
    keys = jax.random.split(jax.random.fold_in(key, number), config.gradients)
    taught, metrics = jax.lax.scan(
        lambda taught, key: gradient_step(replay, taught, key), learner.taught, keys
    )
    # Nothing is learned before there is enough to learn from.
    taught = select(replay.added >= config.warm_up, taught, learner.taught)
    metrics = jax.tree.map(lambda leaf: leaf.mean(), metrics)
    metrics |= experience.report()
    metrics["epsilon"] = player.epsilon
    return MemoryLearner(taught, replay, stage, number + 1), metrics


def followed(target: Any, networks: Any, rate: float) -> Any:
    """A target moved by so much of its distance to the networks it follows."""
    return jax.tree.map(lambda slow, new: slow + rate * (new - slow), target, networks)
