"""Rows picked from an array by fixed numbers, with a gradient that adds up in order."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


def picked(rows: Float[Array, "row *rest"], which: np.ndarray) -> Array:
    """rows[which], where `which` is known when the program is compiled.

    The gradient of such a row is the sum of those of its copies. As a scatter, which is
    what it would be otherwise, that is slow on a CPU and has no fixed order on an
    accelerator; where the copies of each row are is known, too, so they are picked.
    """
    copies = _copies(which.reshape(-1), rows.shape[0])

    @jax.custom_vjp
    def pick(rows: Array) -> Array:
        return rows[which]

    def forward(rows: Array) -> tuple[Array, None]:
        return rows[which], None

    def backward(_: None, slope: Array) -> tuple[Array]:
        each = slope.reshape(which.size, *rows.shape[1:])
        each = jnp.concatenate([each, jnp.zeros_like(each[:1])])
        return (each[copies].sum(axis=1),)

    pick.defvjp(forward, backward)
    return pick(rows)


def _copies(which: np.ndarray, count: int) -> np.ndarray:
    """Where the copies of each row are; numbers beyond the last copy fill it up."""
    places = [np.flatnonzero(which == row) for row in range(count)]
    most = max(map(len, places), default=0)
    found = np.full((count, most), which.size)
    for row, own in enumerate(places):
        found[row, : len(own)] = own
    return found
