"""A small second domain: nothing outside of wildfire may depend on wildfire."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from plato.game import Capacity, Game, Observation, Outcome


class ParcelState(eqx.Module):
    waiting: Bool[Array, " task"]
    resting: Int[Array, " agent"]
    time: Int[Array, ""]


class Parcels(Game[ParcelState, Any]):
    """A small second domain: parcels to carry (fast or gently: two actions a task).

    A courier rests for a step after each parcel, and sees only parcels of its side.
    """

    chance: Array
    limit: Array

    @property
    def capacity(self) -> Capacity:
        return Capacity(agents=2, tasks=4, actions=2)

    @property
    def roster(self) -> Bool[Array, " agent"]:
        return jnp.ones(2, bool)

    @property
    def horizon(self) -> Int[Array, ""]:
        return self.limit

    def agent_name(self, index: int) -> str:
        return f"courier_{index}"

    def initial(self, key):
        waiting = jax.random.bernoulli(key, 0.5, (4,))
        return ParcelState(waiting, jnp.zeros(2, jnp.int32), jnp.zeros((), jnp.int32))

    def noise(self, key):
        return jax.random.uniform(key, (4,))

    def observe(self, state):
        present = state.resting == 0
        side = jnp.arange(4)[None, :] // 2 == jnp.arange(2)[:, None]
        options = side & state.waiting[None, :] & present[:, None]
        return Observation(
            agents=jnp.stack([jnp.arange(2.0), state.resting * 1.0], axis=1),
            roster=self.roster,
            present=present,
            tasks=jnp.arange(4.0)[:, None],
            exists=state.waiting,
            public=jnp.array([True, False]),
            sees_agents=jnp.ones((2, 2), bool),
            sees_tasks=side,
            options=jnp.stack([options, options], axis=2),
        )

    def transition(self, state, actions, noise):
        carried = (actions[:, None] - 1) // 2 == jnp.arange(4)[None, :]
        carried = (carried & (actions > 0)[:, None]).any(axis=0) & state.waiting
        waiting = (state.waiting & ~carried) | (noise < self.chance)
        time = state.time + 1
        resting = (actions > 0).astype(jnp.int32)
        outcome = Outcome(
            reward=jnp.full(2, carried.sum() * 1.0),
            terminated=jnp.array(False),
            truncated=time >= self.limit,
            events={"carried": carried.sum(dtype=jnp.int32)},
        )
        return ParcelState(waiting, resting, time), outcome


def parcels() -> Parcels:
    return Parcels(jnp.asarray(0.3), jnp.asarray(7))
