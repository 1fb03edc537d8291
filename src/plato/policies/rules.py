"""Policies by rule: preferred actions for each agent, ties broken at random."""

from collections.abc import Callable
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray, UInt32

from plato.game import NOOP, Observation
from plato.masking import pick
from plato.policies.policy import Policy

ActionSets: TypeAlias = Bool[Array, "agent choice"]
Preference: TypeAlias = Callable[[Observation], ActionSets]
"""Marks the actions a rule likes equally well; an empty set stands for NOOP."""


def noop(observation: Observation) -> ActionSets:
    """Nobody does anything."""
    return jnp.zeros_like(observation.action_mask)


def uniform(observation: Observation) -> ActionSets:
    """Every option, and NOOP, is as good as any other."""
    return observation.action_mask


class RulePolicy(Policy[None]):
    """Follows a rule; ties are broken uniformly at random."""

    prefer: Preference = eqx.field(static=True)

    def start(self, agents: int) -> None:
        del agents

    def act(
        self, key: PRNGKeyArray, observation: Observation, memory: None
    ) -> tuple[Int[Array, " agent"], None]:
        preferred = self.prefer(observation)
        draws = jax.random.bits(key, (preferred.shape[0],), jnp.uint32)
        return pick(preferred, draws), None


class RecordedTiesPolicy(Policy[Int[Array, ""]]):
    """Follows a rule; ties are broken by a recorded stream of 32-bit numbers.

    Each agent that has a preference takes the next number, in the order of agents, so
    the memory is how far the stream was read.
    """

    stream: UInt32[Array, " draw"]
    prefer: Preference = eqx.field(static=True)

    def start(self, agents: int) -> Int[Array, ""]:
        del agents
        return jnp.zeros((), jnp.int32)

    def act(
        self, key: PRNGKeyArray, observation: Observation, memory: Int[Array, ""]
    ) -> tuple[Int[Array, " agent"], Int[Array, ""]]:
        del key
        preferred = self.prefer(observation)
        takes = preferred[:, NOOP + 1 :].any(axis=1)
        order = jnp.cumsum(takes, dtype=jnp.int32)
        draws = self.stream[memory + jnp.maximum(order - 1, 0)]
        return pick(preferred, draws), memory + order[-1]
