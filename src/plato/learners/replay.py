"""A replay memory: the latest transitions, in arrays of fixed size."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from plato.game import Observation


class Transition(eqx.Module):
    """One step, or many of them, stacked."""

    observation: Observation
    actions: Int[Array, "*many agent"]
    reward: Float[Array, "*many"]
    following: Observation
    """What the step led to, before any reset."""
    discount: Float[Array, "*many"]
    """0 where the game ended, 1 elsewhere: a time limit is no end."""


class Replay(eqx.Module):
    """The last so many items; the oldest give way to the newest."""

    items: PyTree
    """Arrays with a first axis of places."""
    added: Int[Array, ""]
    """How many items were ever added."""

    @classmethod
    def create(cls, item: PyTree, places: int) -> "Replay":
        """An empty memory for items of this form (shapes are enough)."""

        def room(leaf: Any) -> Array:
            return jnp.zeros((places, *leaf.shape), leaf.dtype)

        return cls(jax.tree.map(room, item), jnp.zeros((), jnp.int32))

    @property
    def places(self) -> int:
        return jax.tree.leaves(self.items)[0].shape[0]

    @property
    def size(self) -> Int[Array, ""]:
        """How many items are there to draw from."""
        return jnp.minimum(self.added, self.places)

    def add(self, items: PyTree) -> "Replay":
        """Adds stacked items, no more than there are places."""
        count = jax.tree.leaves(items)[0].shape[0]
        where = (self.added + jnp.arange(count)) % self.places
        kept = jax.tree.map(lambda old, new: old.at[where].set(new), self.items, items)
        return Replay(kept, self.added + count)

    def draw(self, key: PRNGKeyArray, count: int) -> PyTree:
        """Items drawn uniformly, with replacement; blank ones from an empty memory."""
        chosen = jax.random.randint(key, (count,), 0, jnp.maximum(self.size, 1))
        return jax.tree.map(lambda leaf: leaf[chosen], self.items)
