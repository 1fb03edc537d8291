"""Cells as tasks of a Ray cluster. Extra: cluster."""

import logging
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plato.errors import PlatoError
from plato.experiments.cells import Cell
from plato.experiments.listener import Listener
from plato.experiments.store import Entry, Store

RETRIES = 3
"""Times that a task is begun anew after the worker that did it was lost."""
PATIENCE = 1.0
"""Seconds to wait for news before showing that we are still there."""


@dataclass(frozen=True)
class Cluster:
    """Every cell a task; what comes of it is kept here as soon as it comes."""

    address: str | None = None
    """Of the cluster (`ray://host:port`, or `auto`); None begins one right here."""

    def run(self, cells: Sequence[Cell], store: Store, listener: Listener) -> None:
        with connected(self.address) as ray, store.claimed(cells) as mine:
            task = ray.remote(max_retries=RETRIES)(done_elsewhere)
            running = {task.remote(cell): cell for cell in mine}
            listener.begins(mine)
            failed: dict[Cell, str] = {}
            while running:
                ready, _ = ray.wait(list(running), timeout=PATIENCE)
                for reference in ready:
                    cell = running.pop(reference)
                    try:
                        entry = ray.get(reference)
                    except ray.exceptions.RayError as error:
                        failed[cell] = _first_line(error)
                        listener.says(f"{cell}: {failed[cell]}")
                        continue
                    store.add(cell, entry)
                    listener.done(cell, entry)
        if failed:
            raise PlatoError(
                f"{len(failed)} of {len(mine)} cells could not be done; the others are "
                f"in {store.path}, and the same command tries again what is missing."
            )


def done_elsewhere(cell: Cell) -> Entry:
    """The task: all of it happens in a folder of the worker's own."""
    from plato.experiments.work import do

    with tempfile.TemporaryDirectory(prefix="plato-") as folder:
        ((_, entry),) = do([cell], Path(folder))
        return entry


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Ray, connected to a cluster for as long as the context lasts."""
    try:
        import ray
    except ImportError:
        raise PlatoError(
            "A cluster needs Ray; install it with: pip install 'plato-marl[cluster]'"
        ) from None
    ours = not ray.is_initialized()
    if ours:
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise PlatoError(
                f"There is no Ray cluster at {address or 'this machine'} "
                f"({_first_line(error)}); start one with `ray start --head`, and name "
                f"it with --address."
            ) from None
    try:
        yield ray
    finally:
        if ours:
            ray.shutdown()


def _first_line(error: Exception) -> str:
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__
