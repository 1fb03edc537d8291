"""Seeds: whole numbers from users, keys for JAX."""

from collections.abc import Sequence

import jax
import numpy as np
from jaxtyping import Array, Key, PRNGKeyArray

from plato.configuration import whole_number

SEEDS = 2**32
"""How many seeds there are."""


def seed_key(seed: int) -> PRNGKeyArray:
    """The key of one seed."""
    return keys_of([seed])[0]


def seed_keys(first_seed: int, count: int) -> Key[Array, " seed"]:
    """One key for each of the seeds first_seed, first_seed + 1, …"""
    whole_number("seed", first_seed, 0, SEEDS - count)
    return keys_of(range(first_seed, first_seed + count))


def keys_of(seeds: Sequence[int]) -> Key[Array, " seed"]:
    """One key for each of these seeds."""
    for seed in seeds:
        whole_number("seed", seed, 0, SEEDS - 1)
    return jax.vmap(jax.random.key)(np.asarray(seeds, np.uint32))
