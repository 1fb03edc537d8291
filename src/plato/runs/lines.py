"""What the trainings of a run returned as they went on: the lines of its drawings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from plato.runs.folder import RunFolder

MOST_PANELS = 24
"""Learning curves in one drawing; beyond them there are the files in metrics/."""


@dataclass(frozen=True)
class Line:
    """One training: what it had returned after how many steps."""

    name: str
    steps: Sequence[float]
    returns: Sequence[float]


Curves: TypeAlias = dict[tuple[str, ...], list[Line]]
"""Trainings by the setups they play."""


def learning_curves(folder: RunFolder) -> Curves:
    """All trainings, but for setups on which no episode has ended."""
    config = folder.config()
    found: Curves = {}
    for run in config.runs:
        rows = [row for row in folder.read_metrics(run) if row["episodes"]]
        for setups, returns in _by_setups(run.setups, rows).items():
            some = {
                config.learning.played(int(row["update"])): mean
                for row, mean in zip(rows, returns, strict=True)
                if mean is not None
            }
            line = Line(f"seed {run.seed}", list(some), list(some.values()))
            found.setdefault(setups, []).append(line)
    return {
        setups: lines
        for setups, lines in found.items()
        if any(line.steps for line in lines)
    }


def _by_setups(
    setups: tuple[str, ...], rows: Sequence[Mapping[str, Any]]
) -> dict[tuple[str, ...], list[float | None]]:
    """The returns of each update: of every setup, where they are known one by one."""
    if all("returns" in row for row in rows) and len(setups) > 1:
        return {(name,): [row["returns"][name] for row in rows] for name in setups}
    return {setups: [row["return"] for row in rows]}
