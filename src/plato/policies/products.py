"""Products of matrices with few rows, of which a batch holds a great many."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

FEW = 64
"""Rows up to which sums are formed in place of matrix products on an accelerator."""


def small_product(
    left: Float[Array, "row inner"], right: Float[Array, "inner column"]
) -> Float[Array, "row column"]:
    """left @ right, in the way that is fast where the program will run.

    XLA's CPU has a good loop for each small product. An accelerator is kept waiting by
    them: there the sums are written out, and join the arithmetic around them.
    """
    if jax.default_backend() == "cpu" or max(left.shape) > FEW:
        return left @ right
    return written_out(left, right)


def written_out(
    left: Float[Array, "row inner"], right: Float[Array, "inner column"]
) -> Float[Array, "row column"]:
    """left @ right as broadcasting and a sum."""
    return jnp.sum(left[:, :, None] * right[None, :, :], axis=1)
