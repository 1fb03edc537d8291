"""Cells as tasks of a Ray cluster. Extra: cluster."""

import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from plato.cluster import PATIENCE, connected, first_line, task
from plato.errors import PlatoError
from plato.experiments.board import News, writer
from plato.experiments.cells import Cell
from plato.experiments.listener import Listener
from plato.experiments.store import Entry, Store

AHEAD = 4
"""Cells under way for each CPU of the cluster."""
MOST = 256
"""Cells under way at most; a process may often open no more than 1024 files."""


@dataclass(frozen=True)
class Cluster:
    """Every cell a task; what comes of it is kept here as soon as it comes."""

    address: str | None = None
    """Of the cluster (`ray://host:port`, or `auto`); None begins one right here."""
    gpus: float = 0.0
    """What each cell is given of a GPU; Ray hides them from tasks that ask for none."""

    def run(self, cells: Sequence[Cell], store: Store, listener: Listener) -> None:
        waiting, failed = deque(cells), dict[Cell, str]()
        running: dict[Any, _Task] = {}
        begun = 0
        with connected(self.address) as ray, ExitStack() as claims:
            do = task(ray, done_elsewhere, self.gpus)
            news = News(ray, listener)
            while waiting or running:
                room = _most(ray) - len(running)
                mine = list(islice(_claimed(waiting, store, claims), max(room, 0)))
                running |= {do.remote(one.cell, news.board): one for one in mine}
                begun += len(mine)
                if not running:
                    break  # others are doing all that is left
                ready, _ = ray.wait(list(running), timeout=PATIENCE)
                news.tell([one.cell for one in running.values()])
                for reference in ready:
                    one = running.pop(reference)
                    with one.claim:
                        try:
                            entry = _taken(ray, reference, one.cell)
                        except (ray.exceptions.RayError, PlatoError) as error:
                            failed[one.cell] = first_line(error)
                            listener.says(f"{one.cell}: {failed[one.cell]}")
                            continue
                        store.add(one.cell, entry)
                        listener.done(one.cell, entry)
        if failed:
            raise PlatoError(
                f"{len(failed)} of {begun} cells could not be done; the others are "
                f"in {store.path}, and the same command tries again what is missing."
            )


@dataclass(frozen=True)
class _Task:
    """A cell that is under way."""

    cell: Cell
    claim: ExitStack
    """Closing it lets go of the cell."""


def _taken(ray: Any, reference: Any, cell: Cell) -> Entry:
    """What came of a cell, if it is that of the one that was meant."""
    entry = ray.get(reference)
    if entry.fingerprint != cell.fingerprint:
        raise PlatoError(
            "The worker has other policies to learn from than this machine; give it "
            "the same files."
        )
    return entry


def _most(ray: Any) -> int:
    """How many cells to have under way: enough that no worker waits for one, and few
    enough that their claims, an open file each, are allowed."""
    workers = int(ray.cluster_resources().get("CPU", 0))
    return min(max(AHEAD * workers, AHEAD), MOST)


def _claimed(waiting: deque[Cell], store: Store, claims: ExitStack) -> Iterator[_Task]:
    """Takes from what waits the cells that nobody has done or is doing."""
    while waiting:
        cell = waiting.popleft()
        claim = claims.enter_context(ExitStack())
        if claim.enter_context(store.claimed([cell])):
            yield _Task(cell, claim)
        else:
            claim.close()


def done_elsewhere(cell: Cell, board: Any = None) -> Entry:
    """The task: all of it happens in a folder of the worker's own. How it goes is
    written on a board."""
    from plato.experiments.work import do

    with tempfile.TemporaryDirectory(prefix="plato-") as folder:
        ((_, entry),) = do([cell], Path(folder), writer(board, cell))
        return entry
