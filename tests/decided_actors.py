"""Pointer actors that are not trained, and yet far from uniform."""

from typing import Any

import jax

from plato.game import Features
from plato.policies.config import ActorConfig
from plato.policies.pointer import PointerActor


def decided_actor(**changes: Any) -> PointerActor:
    """A small actor for wildfire with large weights."""
    settings: dict[str, Any] = {"hidden": 8, "heads": 2}
    config = ActorConfig(**settings | changes)
    actor = PointerActor.create(config, Features(4, 4, 1), key=jax.random.key(1))
    return jax.tree.map(lambda leaf: 4 * leaf, actor)
