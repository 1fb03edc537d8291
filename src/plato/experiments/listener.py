"""Whoever wants to know how a reproduction goes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from plato.experiments.cells import Cell
from plato.experiments.store import Entry
from plato.runs.train import Progress


@dataclass(frozen=True)
class Listener:
    """What is told, and when."""

    begins: Callable[[Sequence[Cell]], None] = lambda cells: None
    trains: Callable[[Progress], None] = lambda progress: None
    done: Callable[[Cell, Entry], None] = lambda cell, entry: None
    says: Callable[[str], None] = lambda line: None
