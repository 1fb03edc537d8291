"""The store: a folder with one file for each cell that is done.

`cells/PROTOCOL/ROW/…json.gz` are plain JSON, readable by anything; they are written
once, whole, and never changed. `policies/` has the policy that each training chose,
`work/` trainings under way, `claims/` says which process does what, `damaged/` has what
could not be read, and `outdated/` what was done anew because a setup has changed.
"""

import fcntl
import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from plato.errors import PlatoError
from plato.experiments.cells import Cell, setup_digests
from plato.experiments.whole import check_whole, decoded
from plato.files import write_bytes

FORMAT = 1


@dataclass(frozen=True)
class Entry:
    """What came of a cell."""

    fingerprint: str
    data: dict[str, Any]
    """As it is in its file."""
    policy: bytes | None = None
    """The checkpoint that was chosen first; kept beside the file."""


class Store:
    """A folder of results. Several processes may use one at the same time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged: list[Path] = []
        """Files that could not be read; they were moved aside where that is allowed."""
        self.changed: dict[Path, str] = {}
        """Files that stay and do not count, each with a setup that was another one when
        they were made."""
        self._refused: dict[Path, tuple[int, int] | None] = {}
        """Files that are still there and do not count."""
        self._digest = cache(_digest)

    @property
    def work(self) -> Path:
        """Where trainings that are under way keep what they need to go on."""
        return self.path / "work"

    def has(self, cell: Cell) -> bool:
        """Whether a cell is done, for all that is known without reading its file."""
        path = self._file(cell)
        return _stamp(path) not in (None, self._refused.get(path))

    def find(self, cell: Cell) -> Entry | None:
        """What came of a cell, if it is done and can be read."""
        return self._read(self._file(cell), cell)

    def entries(self) -> Iterator[Entry]:
        """Everything that is done."""
        for path in sorted((self.path / "cells").rglob("*.json.gz")):
            entry = self._read(path)
            if entry is not None:
                yield entry

    def add(self, cell: Cell, entry: Entry) -> None:
        """Keeps what came of a cell; what is there already stays as it is."""
        path = self._file(cell)
        if self.has(cell):
            return
        if path in self.changed:
            self._keep_outdated(cell)
        if entry.policy is not None:
            write_bytes(self.policy_file(cell), entry.policy)
        write_bytes(path, encoded(entry.data))

    def policy_file(self, cell: Cell) -> Path:
        """Where the policy that a cell's training chose is kept."""
        return self.path / "policies" / f"{cell.key}.safetensors"

    @contextmanager
    def claimed(self, cells: Sequence[Cell]) -> Iterator[list[Cell]]:
        """Those of the cells that are not done, and that nobody else is doing now.

        They are this process's until the end of the context, or its own.
        """
        with ExitStack() as locks:
            mine = [c for c in cells if not self.has(c) and self._claim(c, locks)]
            # Another process may have finished one just before its claim was let go.
            yield [cell for cell in mine if not self.has(cell)]

    def _claim(self, cell: Cell, locks: ExitStack) -> bool:
        path = self.path / "claims" / f"{cell.fingerprint}.lock"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise PlatoError(f"{path}: cannot be written ({error.strerror}).") from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return False
        locks.callback(os.close, handle)
        return True

    def _file(self, cell: Cell) -> Path:
        return self.path / "cells" / f"{cell.key}.json.gz"

    def _read(self, path: Path, cell: Cell | None = None) -> Entry | None:
        """What a file holds; it must be all that came of the cell, if one is given."""
        content = _content(path)
        if content is None:
            return None
        try:
            data = decoded(gzip.decompress(content))
            _check_format(path, data)
            check_whole(data, cell)
        except (OSError, EOFError, ValueError, zlib.error):  # gzip's are OSErrors
            self._put_aside(path)
            return None
        for name, digest in data.get("setups", {}).items():
            if self._digest(name) != digest:
                self.changed[path], self._refused[path] = name, _stamp(path)
                return None
        return Entry(data["fingerprint"], data)

    def _keep_outdated(self, cell: Cell) -> None:
        """Makes room for what is done anew."""
        path, policy = self._file(cell), self.policy_file(cell)
        try:
            mark = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
            aside = self.path / "outdated" / f"{cell.key}-{mark}"
            if policy.exists():  # first, since without its result it would be nobody's
                _move(policy, aside.with_name(f"{aside.name}.safetensors"))
            _move(path, aside.with_name(f"{aside.name}.json.gz"))
        except OSError as error:
            raise PlatoError(f"{path}: cannot be moved ({error.strerror}).") from None

    def _put_aside(self, path: Path) -> None:
        aside = self.path / "damaged" / path.relative_to(self.path / "cells")
        try:
            _move(path, aside)
        except FileNotFoundError:
            return  # another process met it, too, and has moved it
        except OSError:
            self._refused[path] = _stamp(path)
            aside = path  # a store that is only read stays as it is
        if aside not in self.damaged:
            self.damaged.append(aside)


def encoded(data: dict[str, Any]) -> bytes:
    """A result as its file has it: the same bytes for the same result."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return gzip.compress(text.encode(), mtime=0)


def kept(work: Path, key: str) -> bool:
    """Whether the store that trainings under way belong to has the cell of a key."""
    return (work.parent / "cells" / f"{key}.json.gz").exists()


def _digest(setup: str) -> str | None:
    """What a setup is now; None if there is none of this name."""
    try:
        return setup_digests([setup]).get(setup)
    except PlatoError:
        return None


def _content(path: Path) -> bytes | None:
    """What is in a file, if it is there. That it cannot be read now does not mean that
    it is damaged."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PlatoError(f"{path}: cannot be read ({error.strerror}).") from None


def _check_format(path: Path, data: dict[str, Any]) -> None:
    if data["format"] != FORMAT:
        code = data["code"] if isinstance(data["code"], dict) else {}
        raise PlatoError(
            f"{path}: is of format {data['format']}, and this version of PLATO reads "
            f"format {FORMAT}; use the version that wrote it "
            f"({code.get('plato', 'unknown')}), or another --store."
        )


def _move(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    os.replace(path, to)


def _stamp(path: Path) -> tuple[int, int] | None:
    """Tells a file from another one in its place; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns
