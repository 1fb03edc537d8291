"""Seeds: whole numbers from users, keys for JAX."""

import jax
import numpy as np
from jaxtyping import Array, Key, PRNGKeyArray

from plato.configuration import whole_number

SEEDS = 2**32
"""How many seeds there are."""


def seed_key(seed: int) -> PRNGKeyArray:
    """The key of one seed."""
    return seed_keys(seed, 1)[0]


def seed_keys(first_seed: int, count: int) -> Key[Array, " seed"]:
    """One key for each of the seeds first_seed, first_seed + 1, …"""
    whole_number("seed", first_seed, 0, SEEDS - count)
    seeds = np.arange(first_seed, first_seed + count, dtype=np.uint32)
    return jax.vmap(jax.random.key)(seeds)
