"""Seeds: whole numbers from users, keys for JAX."""

from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Key, PRNGKeyArray

from plato.errors import PlatoError

SEEDS = 2**32


def seed_key(seed: int) -> PRNGKeyArray:
    """The key of one seed."""
    return seed_keys(seed, 1)[0]


def seed_keys(first_seed: int, count: int) -> Key[Array, " seed"]:
    """One key for each of the seeds first_seed, first_seed + 1, …"""
    whole_number("seed", first_seed, 0, SEEDS - count)
    seeds = np.arange(first_seed, first_seed + count, dtype=np.uint32)
    return jax.vmap(jax.random.key)(seeds)


def whole_number(name: str, value: Any, least: int, most: int = SEEDS) -> None:
    """Refuses what is not a whole number within its bounds."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise PlatoError(f"{name} must be a whole number, not {value!r}.")
    if not least <= value <= most:
        raise PlatoError(f"{name} must be from {least} to {most}, not {value}.")
