"""Pytrees as safetensors files: named tensors, a JSON header, no pickle."""

import json
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save

from plato.errors import PlatoError
from plato.files import write_bytes

Tree = TypeVar("Tree")


def write_tree(path: Path, tree: Any, header: dict[str, Any]) -> None:
    """Writes all arrays of a pytree under their paths in it, whole or not at all."""
    tensors = {
        name: np.asarray(leaf, order="C")
        for name, leaf in named_leaves(jax.device_get(tree))
    }
    metadata = {"plato": json.dumps(header)}
    write_bytes(path, save(tensors, metadata=metadata))


def read_header(path: Path) -> dict[str, Any]:
    """The header alone."""
    try:
        with safe_open(path, framework="numpy") as file:
            return json.loads((file.metadata() or {})["plato"])
    except FileNotFoundError:
        raise PlatoError(f"{path}: there is no such file.") from None
    except (OSError, SafetensorError, KeyError, ValueError):
        raise PlatoError(
            f"{path}: is not a checkpoint of PLATO, or is cut short or damaged."
        ) from None


def read_tree(path: Path, like: Tree) -> Tree:
    """Reads a pytree of the form of `like`; refused where any shape differs."""
    read_header(path)
    tensors = load_file(path)
    leaves = []
    for name, leaf in named_leaves(like):
        found = tensors.pop(name, None)
        if found is not None and found.dtype == np.float16:
            found = found.astype(leaf.dtype)  # kept in half the bytes: see `halved`
        if found is None or found.shape != leaf.shape or found.dtype != leaf.dtype:
            has = "nothing" if found is None else f"{found.dtype}{list(found.shape)}"
            raise PlatoError(
                f"{path}: is of another architecture: {name} should be "
                f"{leaf.dtype}{list(leaf.shape)}, the file has {has}."
            )
        leaves.append(found)
    if tensors:
        raise PlatoError(
            f"{path}: is of another architecture: {next(iter(tensors))} has no place."
        )
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


def halved(tree: Tree) -> Tree:
    """The same with 16 bits to each number of 32, for files that are to be small."""
    return jax.tree.map(
        lambda leaf: leaf.astype(np.float16) if leaf.dtype == np.float32 else leaf,
        tree,
    )


def named_leaves(tree: Any) -> list[tuple[str, Any]]:
    """All arrays of a pytree with their paths in it, `a.b.0` and the like."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return [
        (jax.tree_util.keystr(path, simple=True, separator="."), leaf)
        for path, leaf in leaves
    ]
