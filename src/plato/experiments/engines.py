"""Where cells are done: on this machine, many at once on its GPU, or on a cluster."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import jax

from plato.experiments.cells import Cell
from plato.experiments.chunks import halves, stacked
from plato.experiments.listener import Listener
from plato.experiments.store import Entry, Store
from plato.experiments.work import do
from plato.learners.device_memory import fits, in_two

EngineName: TypeAlias = Literal["auto", "local", "gpu", "ray"]


@runtime_checkable
class Engine(Protocol):
    """Does cells and keeps what comes of them in a store."""

    def run(self, cells: Sequence[Cell], store: Store, listener: Listener) -> None: ...


@dataclass(frozen=True)
class ThisMachine:
    """One chunk after the other, here. Stacked: all cells that can be in one program.

    A CPU gains nothing from stacking, and single cells are done sooner.
    """

    stack: bool
    do: Callable[..., Iterator[tuple[Cell, Entry]]] = field(default=do)

    def run(self, cells: Sequence[Cell], store: Store, listener: Listener) -> None:
        chunks = stacked(cells) if self.stack else [[cell] for cell in cells]
        while chunks:
            chunk = chunks.pop(0)
            with store.claimed(chunk) as mine:
                if not mine:
                    continue
                if len(mine) < len(chunk) and self.stack:
                    # What is left may not be all pairs of setups and seeds any more.
                    first, *rest = stacked(mine)
                    chunks, mine = rest + chunks, first
                if not fits(partial(self._do, mine, store, listener)):
                    parts = halves(mine)
                    listener.says(in_two(len(mine)))
                    chunks = [*parts, *chunks]

    def _do(self, cells: Sequence[Cell], store: Store, listener: Listener) -> None:
        listener.begins(cells)
        for cell, entry in self.do(cells, store.work, listener.trains):
            store.add(cell, entry)
            listener.done(cell, entry)


def engine(name: EngineName, address: str | None = None, gpus: float = 0.0) -> Engine:
    """An engine by its name; `auto` is what this machine has."""
    if name == "ray":
        from plato.experiments.cluster import Cluster

        return Cluster(address, gpus)
    if name == "auto":
        name = "local" if jax.default_backend() == "cpu" else "gpu"
    return ThisMachine(stack=name == "gpu")
