"""What the trainings of a run returned as they went on: the lines of its drawings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

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
        line = Line(
            f"seed {run.seed}",
            [config.learning.played(int(row["update"])) for row in rows],
            [row["return"] for row in rows],
        )
        found.setdefault(run.setups, []).append(line)
    return {
        setups: lines
        for setups, lines in found.items()
        if any(line.steps for line in lines)
    }
