"""How a reproduction goes, as a live line."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from plato.experiments.cells import Cell
from plato.experiments.listener import Listener
from plato.experiments.store import Entry
from plato.runs.train import Progress as Training

GIVEN = 1_000_000
"""A cell without a training counts as so many steps when time is told ahead."""


@contextmanager
def shown(cells: Sequence[Cell], out: Console) -> Iterator[Listener]:
    """A listener that shows a bar for as long as the context lasts."""
    work = {cell: cell.steps or GIVEN for cell in cells}
    left, begun = dict(work), time.monotonic()
    bar = Progress(
        MofNCompleteColumn(),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[line]}"),
        console=out,
    )
    task = bar.add_task("", total=len(cells), line="")
    at_work: list[Cell] = []

    def begins(now: Sequence[Cell]) -> None:
        at_work[:] = now
        what = str(now[0]) if len(now) == 1 else f"{now[0].row.name}, {len(now)} cells"
        bar.update(task, line=what)

    def trains(training: Training) -> None:
        what = str(at_work[0]) if len(at_work) == 1 else f"{at_work[0].row.name} × "
        if len(at_work) > 1:
            what += str(len(at_work))
        share = training.update / training.updates
        bar.update(
            task,
            line=f"{what}  {100 * share:.0f} %  {training.steps_per_second:,.0f} "
            f"steps/s  return {training.mean_return}  {ahead(share)}",
        )

    def ahead(share: float) -> str:
        done = sum(work.values()) - sum(left.values())
        done += share * sum(left.get(cell, 0) for cell in at_work)
        if not done:
            return ""
        seconds = (time.monotonic() - begun) * (sum(work.values()) / done - 1)
        return f"ETA {int(seconds) // 3600}:{int(seconds) // 60 % 60:02d} h"

    def done(cell: Cell, entry: Entry) -> None:
        left.pop(cell, None)
        first = next(iter(entry.data["episodes"].values()))["return"]
        mean = sum(map(sum, first)) / sum(map(len, first))
        took = sum(entry.data["seconds"].values())
        bar.console.print(
            f"{cell}: return {mean:.2f}, {took:.0f} s", highlight=False, soft_wrap=True
        )
        bar.update(task, advance=1)

    def says(line: str) -> None:
        bar.console.print(line, highlight=False, soft_wrap=True)

    with bar:
        yield Listener(begins, trains, done, says)
