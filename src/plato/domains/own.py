"""Games of one's own in Python: `couriers.py:rush_hour`, `couriers:rush_hour`."""

import hashlib
import re
import sys
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import numpy as np

from plato.errors import PlatoError
from plato.game import Game
from plato.tensors import numbers


def own_game(name: str) -> Game[Any, Any]:
    """The game at FILE.py:NAME or MODULE:NAME; NAME is a game, or makes one."""
    where, _, attribute = name.rpartition(":")
    module = _from_file(where) if where.endswith(".py") else _imported(where)
    if not hasattr(module, attribute):
        raise PlatoError(f"{where}: has nothing named {attribute!r}.")
    found = getattr(module, attribute)
    if callable(found) and not isinstance(found, Game):
        try:
            found = found()
        except Exception as error:
            raise PlatoError(
                f"{name}: cannot be called without arguments to make a game: "
                f"{type(error).__name__}: {error}"
            ) from error
    if not isinstance(found, Game):
        raise PlatoError(
            f"{name}: is a {type(found).__name__}; it must be a plato.Game, or a "
            f"function that makes one."
        )
    return found


def own_digest(game: Game[Any, Any]) -> str:
    """The same for the same numbers, static fields and file of code."""
    found = hashlib.sha256(_text(jax.tree.structure(game)).encode())
    for leaf in map(numbers, jax.tree.leaves(game)):
        array = np.asarray(leaf)
        found.update(f"{array.dtype}{array.shape}".encode())
        found.update(array.tobytes())
    file = getattr(sys.modules.get(type(game).__module__), "__file__", None)
    if file is not None:  # none for what was typed at a prompt
        found.update(Path(file).read_bytes())
    return found.hexdigest()[:12]


def _text(value: Any) -> str:
    """How a value is written, without what differs from process to process: where
    objects lie in memory, and the order of sets."""
    text = re.sub(r" at 0x[0-9a-f]+", "", str(value))
    return re.sub(r"\{[^{}]*\}", lambda m: str(sorted(m[0][1:-1].split(", "))), text)


def _from_file(where: str) -> ModuleType:
    path = Path(where).resolve()
    if not path.exists():
        raise PlatoError(f"{where}: there is no such file.")
    try:
        return _executed(path)
    except Exception as error:
        raise _cannot_import(where, error) from error


@cache  # classes must be the same ones whenever the file is named
def _executed(path: Path) -> ModuleType:
    unique = hashlib.sha256(str(path).encode()).hexdigest()[:8]
    spec = spec_from_file_location(f"plato_own_{path.stem}_{unique}", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _imported(where: str) -> ModuleType:
    try:
        return import_module(where)
    except Exception as error:
        raise _cannot_import(where, error) from error


def _cannot_import(where: str, error: Exception) -> PlatoError:
    return PlatoError(f"{where}: cannot be imported: {type(error).__name__}: {error}")
