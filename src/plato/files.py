"""Files that are written whole or not at all."""

import errno
import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from plato.errors import PlatoError

ASIDE = ".partial"


def write_bytes(path: Path, content: bytes) -> None:
    """Writes aside and renames, so that no reader ever meets half a file."""
    path = writable(path)
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}{ASIDE}")
    try:
        with open(aside, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise cannot_write(path, error) from None
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def cannot_write(path: Path, error: OSError) -> PlatoError:
    """What to say when a file cannot be written, and what to do about it."""
    reason = f"{path}: cannot be written ({error.strerror})"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return PlatoError(
            f"{reason}; make room, then run the same again: what was done before is "
            f"not lost."
        )
    return PlatoError(f"{reason}.")


def clear_partial(folder: Path) -> None:
    """Removes what a killed process was writing; nobody may be writing there now."""
    for path in folder.rglob(f".*{ASIDE}"):
        path.unlink(missing_ok=True)


@contextmanager
def held(folder: Path, done: str) -> Iterator[None]:
    """Keeps other processes out of a folder, and removes what one left half.

    `done` says in an error what is being done there.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PlatoError(
                f"{folder}: is being {done} by another process; wait for it to end."
            ) from None
        clear_partial(folder)
        yield
    finally:
        os.close(handle)  # lets go of the lock, as the end of the process does


def writable(path: Path) -> Path:
    """The path with links followed and its folder made; refused if not writable.

    Worth asking before a long computation whose result is to be written there.
    """
    resolved = path.resolve()
    if resolved.exists() and not resolved.is_file():
        raise PlatoError(f"{path}: cannot be written (it is not a plain file).")
    try:
        resolved.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from None
    if not os.access(resolved.parent, os.W_OK):
        raise PlatoError(f"{path}: cannot be written (its folder is read-only).")
    return resolved


def file_digest(path: Path) -> str:
    """What a file holds, in a few letters."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    except OSError as error:
        raise PlatoError(f"{path}: cannot be read ({error.strerror}).") from None


def read_json(path: Path) -> Any:
    """The data of a JSON file that this program wrote."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PlatoError(f"{path}: cannot be read ({error.strerror}).") from None
    except ValueError:
        raise PlatoError(f"{path}: is cut short or damaged.") from None


def write_text(path: Path, content: str) -> None:
    """`write_bytes` for text."""
    write_bytes(path, content.encode("utf-8"))


def write_json(path: Path, data: Any) -> None:
    """`write_text` for data, as JSON."""
    write_text(path, json.dumps(data, indent=1, allow_nan=False) + "\n")
