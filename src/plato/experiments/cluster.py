"""Cells as tasks of a Ray cluster. Extra: cluster."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plato.cluster import PATIENCE, RETRIES, connected, first_line
from plato.errors import PlatoError
from plato.experiments.cells import Cell
from plato.experiments.listener import Listener
from plato.experiments.store import Entry, Store


@dataclass(frozen=True)
class Cluster:
    """Every cell a task; what comes of it is kept here as soon as it comes."""

    address: str | None = None
    """Of the cluster (`ray://host:port`, or `auto`); None begins one right here."""
    gpus: float = 0.0
    """What each cell is given of a GPU; Ray hides them from tasks that ask for none."""

    def run(self, cells: Sequence[Cell], store: Store, listener: Listener) -> None:
        with connected(self.address) as ray, store.claimed(cells) as mine:
            task = ray.remote(max_retries=RETRIES, num_gpus=self.gpus)(done_elsewhere)
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
                        failed[cell] = first_line(error)
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
