"""What a store holds, as the results that comparisons are made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from plato.domains.setups import Setup
from plato.evaluation.contestants import Contestant, Training
from plato.evaluation.protocols import Played, Protocol, Result
from plato.experiments.cells import Cell
from plato.experiments.store import Entry, Store


@dataclass(frozen=True)
class Done:
    """A cell, and what came of it."""

    cell: Cell
    entry: Entry

    def played(self, setup: str) -> Played:
        """Its episodes on a setup."""
        seed = self.cell.seed if self.cell.trained_on else None
        metrics = self.entry.data["episodes"][setup]
        return Played(
            seed,
            tuple(self.entry.data.get("chosen", ())),
            {name: np.asarray(rows, np.float64) for name, rows in metrics.items()},
        )


def done(store: Store, cells: Sequence[Cell]) -> list[Done]:
    """Those of the cells that are in the store."""
    found = [(cell, store.find(cell)) for cell in cells]
    return [Done(cell, entry) for cell, entry in found if entry is not None]


@dataclass(frozen=True)
class Recorded:
    """Results by row and setup, in place of an examiner that would play."""

    protocol: Protocol
    results: Mapping[tuple[str, str], Result]

    def check(self, contestants: Sequence[Contestant], setups: Sequence[Setup]) -> None:
        """Nothing is left to be refused: what is not there is not asked for."""

    def result(self, contestant: Contestant, setup: Setup) -> Result:
        return self.results[contestant.name, setup.name]


def results(
    found: Sequence[Done], setups: Sequence[str]
) -> dict[tuple[str, str], Result]:
    """The results of all rows on some setups, their trainings in order of seeds."""
    by_place: dict[tuple[str, str], list[Done]] = {}
    for one in sorted(found, key=lambda one: one.cell.seed):
        for setup in one.cell.plays:
            if setup in setups:
                by_place.setdefault((one.cell.row.name, setup), []).append(one)
    return {
        (row, setup): Result(
            row,
            setup,
            group[0].cell.trained_on,
            bool(group[0].cell.trained_on) and setup not in group[0].cell.trained_on,
            tuple(one.played(setup) for one in group),
        )
        for (row, setup), group in by_place.items()
    }


def contestants(
    found: Mapping[tuple[str, str], Result], setups: Sequence[str], least: int
) -> list[Contestant]:
    """The rows that have results on all setups.

    `least` is how many trainings a row must have on each of them.
    """
    complete = []
    for row in dict.fromkeys(row for row, _ in found):
        own = [found.get((row, setup)) for setup in setups]
        if all(r is not None and _enough(r, least) for r in own):
            trainings = tuple(
                Training(result.trained_on, played.seed or 0, 0, (), Path())
                for result in own
                if result is not None and result.trained_on
                for played in result.played
            )
            complete.append(Contestant(row, trainings=trainings))
    return complete


def _enough(result: Result, least: int) -> bool:
    return not result.trained_on or len(result.played) >= least
