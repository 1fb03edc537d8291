"""How a reproduction goes, shown live."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console

from plato.cli.live import Lines, clock, live_lines, speed
from plato.experiments.cells import Cell
from plato.experiments.listener import Listener, named
from plato.experiments.store import Entry
from plato.runs.train import Progress as Training


@contextmanager
def shown(cells: Sequence[Cell], out: Console) -> Iterator[Listener]:
    """A listener that shows what it hears for as long as the context lasts."""
    with live_lines(out, len(cells)) as lines:
        told = Told(cells, lines, out)
        yield Listener(told.begins, told.trains, told.done, told.says)


class Told:
    """What of the work is done, and what of it is being done."""

    def __init__(self, cells: Sequence[Cell], lines: Lines, out: Console) -> None:
        # Time is told ahead by trainings alone: all else takes little of it.
        self.work = {cell: cell.steps for cell in cells}
        self.left = dict(self.work)
        self.first_training: float | None = None
        self.lines, self.out = lines, out
        self.at_work: list[Cell] = []
        self.share = 0.0
        """How much is over of what is being done."""

    def begins(self, now: Sequence[Cell]) -> None:
        self.at_work, self.share = list(now), 0.0
        if self.first_training is None and now[0].trained_on:
            self.first_training = time.monotonic()
        self._show()

    def trains(self, training: Training) -> None:
        self.share = training.update / training.updates
        self._show(
            f"  {speed(training)}",
            f"  {100 * self.share:.0f} %  return {training.mean_return}",
        )

    def done(self, cell: Cell, entry: Entry) -> None:
        self.left.pop(cell, None)
        self.at_work = [other for other in self.at_work if other != cell]
        first = next(iter(entry.data["episodes"].values()))["return"]
        mean = sum(map(sum, first)) / sum(map(len, first))
        took = sum(entry.data["seconds"].values())
        self.says(f"{cell}: return {mean:.2f}, {took:.0f} s")
        self._show()

    def says(self, line: str) -> None:
        self.out.print(line, markup=False, soft_wrap=True)

    def _show(self, pace: str = "", how: str = "") -> None:
        what = named(self.at_work) if self.at_work else ""
        eta = f"ETA {clock(self._seconds_left())}"
        self.lines.show(len(self.work) - len(self.left), eta + pace, what + how)

    def _seconds_left(self) -> float:
        whole, left = sum(self.work.values()), sum(self.left.values())
        begun = sum(self.left.get(cell, 0) for cell in self.at_work)
        done = whole - left + self.share * begun
        if self.first_training is None or not done:
            return float("nan")
        return (time.monotonic() - self.first_training) * (whole / done - 1)
