"""Pytrees as safetensors files: named tensors, a JSON header, no pickle."""

import json
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
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
        for name, leaf in named_leaves(jax.device_get(jax.tree.map(numbers, tree)))
    }
    metadata = {"plato": json.dumps(header)}
    write_bytes(path, save(tensors, metadata=metadata))


def read_header(path: Path) -> dict[str, Any]:
    """The header alone."""
    try:
        with safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {})["plato"])
    except FileNotFoundError:
        raise PlatoError(f"{path}: there is no such file.") from None
    except (OSError, SafetensorError, KeyError, ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise PlatoError(
            f"{path}: is not a checkpoint of PLATO, or is cut short or damaged."
        )
    return header


def read_tree(path: Path, like: Tree) -> Tree:
    """Reads a pytree of the form of `like`; refused where any shape differs."""
    read_header(path)
    tensors = load_file(path)
    leaves = []
    for name, leaf in named_leaves(like):
        found, like_key = tensors.pop(name, None), is_key(leaf)
        form = jax.eval_shape(jax.random.key_data, leaf) if like_key else leaf
        if found is not None and found.dtype == np.float16:
            found = found.astype(form.dtype)  # kept in half the bytes: see `halved`
        if found is None or found.shape != form.shape or found.dtype != form.dtype:
            has = "nothing" if found is None else f"{found.dtype}{list(found.shape)}"
            raise PlatoError(
                f"{path}: is of another architecture: {name} should be "
                f"{form.dtype}{list(form.shape)}, the file has {has}."
            )
        leaves.append(_key(found, leaf.dtype) if like_key else found)
    if tensors:
        raise PlatoError(
            f"{path}: is of another architecture: {next(iter(tensors))} has no place."
        )
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


def is_key(leaf: Any) -> bool:
    """Whether an array is of random keys, which neither files nor NumPy know."""
    typed = isinstance(leaf, jax.Array | jax.ShapeDtypeStruct)
    return typed and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def numbers(leaf: Any) -> Any:
    """An array as it is; of random keys, the numbers that they are made of."""
    return jax.random.key_data(leaf) if is_key(leaf) else leaf


def _key(found: np.ndarray, dtype: Any) -> jax.Array:
    """Random keys of a kind, from their numbers."""
    impl = jax.random.key_impl(jnp.empty((), dtype))
    return jax.random.wrap_key_data(jnp.asarray(found), impl=impl)


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
