"""Policies on disk: one safetensors file that says how to rebuild its actor."""

from pathlib import Path
from typing import Any

import jax

import plato
from plato.configuration import from_mapping, to_mapping
from plato.errors import PlatoError
from plato.policies.config import ActorConfig
from plato.policies.pointer import Features, PointerActor
from plato.tensors import read_header, read_tree, write_tree

KIND = "pointer actor"


def save_actor(
    path: Path,
    actor: PointerActor,
    config: ActorConfig,
    features: Features,
    about: dict[str, Any],
) -> None:
    """Writes an actor; `about` says where it comes from."""
    header = {
        "kind": KIND,
        "version": plato.__version__,
        "actor": to_mapping(config),
        "features": features._asdict(),
        "about": about,
    }
    write_tree(path, actor, header)


def load_actor(path: Path) -> PointerActor:
    """Reads an actor back."""
    header = read_header(path)
    if header.get("kind") != KIND:
        raise PlatoError(f"{path}: holds a {header.get('kind')!r}, not a policy.")
    try:
        config = from_mapping(ActorConfig, header["actor"], "actor")
        features = Features(**header["features"])
    except (PlatoError, KeyError, TypeError) as error:
        raise PlatoError(f"{path}: has a header that cannot be read: {error}") from None
    blank = jax.eval_shape(
        lambda key: PointerActor.create(config, features, key=key), jax.random.key(0)
    )
    return jax.tree.map(jax.numpy.asarray, read_tree(path, blank))
