"""Whoever wants to know how a reproduction goes."""

from collections import Counter
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


def named(cells: Sequence[Cell]) -> str:
    """Cells in a few words: a single one as it is called, others by their rows."""
    if len(cells) == 1:
        return str(cells[0])
    rows = Counter(cell.row.name for cell in cells).items()
    return ", ".join(f"{row} × {many}" if many > 1 else row for row, many in rows)
