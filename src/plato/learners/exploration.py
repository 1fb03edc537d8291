"""Playing to learn from a memory: policies that stray, and what is remembered."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from plato.game import Game, Observation
from plato.learners.replay import Replay, Transition
from plato.learners.rollout import Experience, Stage, rollout
from plato.masking import sample
from plato.policies.policy import Policy


class Explorer(eqx.Module):
    """A policy, but each agent does anything it may with a chance of epsilon."""

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
        offered = observation.action_mask.astype(jnp.float32)
        anything = sample(offered, jax.random.uniform(k_what, (count,)))
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


def empty_memory(
    games: Game[Any, Any], player: Explorer, stage: Stage, places: int
) -> Replay:
    """Room for so many transitions of these games."""

    def one_step() -> Transition:
        _, step = rollout(games, player, stage, jax.random.key(0), 1)
        return jax.tree.map(lambda leaf: leaf[0], transitions(step))

    return Replay.create(jax.eval_shape(one_step), places)
