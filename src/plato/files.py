"""Files that are written whole or not at all."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from plato.errors import PlatoError


def write_bytes(path: Path, content: bytes) -> None:
    """Writes aside and renames, so that no reader ever meets half a file."""
    aside: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(aside, 0o644)
        os.replace(aside, path)
    except OSError as error:
        if aside is not None:
            Path(aside).unlink(missing_ok=True)
        raise PlatoError(f"{path}: cannot be written ({error.strerror}).") from None


def write_text(path: Path, content: str) -> None:
    """`write_bytes` for text."""
    write_bytes(path, content.encode("utf-8"))


def write_json(path: Path, data: Any) -> None:
    """`write_text` for data, as JSON."""
    write_text(path, json.dumps(data, indent=1) + "\n")
