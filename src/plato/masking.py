"""Choices and reductions over sets stored as masked arrays, safe for empty sets."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32


def masked_min(
    values: Float[Array, " *row"], mask: Bool[Array, " *row"], axis: int = -1
) -> Float[Array, " *rest"]:
    """The least value of the set; +inf for an empty one."""
    return jnp.min(values, axis=axis, where=mask, initial=jnp.inf)


def pick(
    mask: Bool[Array, "row choice"], draws: UInt32[Array, " row"]
) -> Int[Array, " row"]:
    """For each row the (draw mod n)-th of its n marked choices; 0 where none is."""
    marked = jnp.cumsum(mask, axis=1, dtype=jnp.uint32)
    rank = draws % jnp.maximum(marked[:, -1], 1)
    # Choices before the one sought have at most `rank` marked ones up to themselves.
    place = jnp.sum(marked <= rank[:, None], axis=1, dtype=jnp.int32)
    return jnp.where(mask.any(axis=1), place, 0)
