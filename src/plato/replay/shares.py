"""Rows of probabilities, of which a recording keeps the largest entries."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int


class Shares(eqx.Module):
    """For each agent, the largest of its probabilities; all of them where few.

    Of `counted` entries the first min(counted, kept) mean something, the largest first.
    What is not kept has the rest of the probability.
    """

    index: Int[Any, "*time agent kept"]
    probability: Float[Any, "*time agent kept"]
    counted: Int[Any, "*time agent"]

    @property
    def kept(self) -> np.ndarray:
        """How many entries mean something, for each agent."""
        return np.minimum(np.asarray(self.counted), self.index.shape[-1])


def largest_shares(
    probabilities: Float[Array, "agent entry"],
    mask: Bool[Array, "agent entry"],
    most: int,
) -> Shares:
    """The largest probabilities among the marked ones, at most so many of them."""
    kept = min(most, probabilities.shape[1])
    ranked = jnp.where(mask, probabilities, -1.0)
    values, index = jax.lax.top_k(ranked, kept)
    counted = jnp.sum(mask, axis=1, dtype=jnp.int32)
    return Shares(index.astype(jnp.int32), jnp.maximum(values, 0.0), counted)
