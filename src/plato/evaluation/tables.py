"""Evaluations as console tables."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from plato.evaluation.evaluate import Evaluation
from plato.evaluation.fitting import fitting
from plato.evaluation.metrics import mean_and_std, shown

INDENT = "   "
LONG_NAME = 20
"""Names up to here always stand beside their numbers, not above them."""
LONG_LABEL = 10
"""From here on a label is broken between words where room is scarce."""


@dataclass(frozen=True)
class Column:
    """A metric: what it is called, in one line or more, and a number for each row."""

    label: list[str]
    numbers: list[str]

    @property
    def width(self) -> int:
        """What it takes, with the gap before it."""
        gap = 2 if "±" in self.numbers[0] else 1
        return gap + max(map(len, self.label + self.numbers))

    def shortened(self) -> "Column":
        """The same with its label in lines."""
        lines = textwrap.wrap(self.label[0], LONG_LABEL, break_long_words=False)
        return Column(lines, self.numbers)


def evaluation_table(evaluations: Sequence[Evaluation], width: int) -> RenderableType:
    """A section for each setup, a row for each policy, and the protocol below.

    A console too narrow for the standard deviations gets the means alone, if need be in
    several parts; names and numbers stay whole.
    """
    names = [f"{INDENT}{row.policy}" for row in evaluations]
    beside = _beside(names, evaluations, width)
    parts = _fitting(evaluations, width - beside)
    lines = [
        line for part in parts for line in _lines(evaluations, names, beside, part)
    ]
    first = evaluations[0]
    last_seed = first.first_seed + first.episodes - 1
    with_std = "±" in parts[0][0].numbers[0]
    numbers = "mean ± sample standard deviation" if with_std else "mean"
    note = (
        f"{numbers} over {first.episodes} episodes "
        f"(seeds {first.first_seed}–{last_seed}), {first.noise} noise"
    )
    return Group(*lines, Text(note, style="dim"))


def _beside(names: Sequence[str], evaluations: Sequence[Evaluation], width: int) -> int:
    """Columns for the names, of which long ones may not push any metric aside."""
    means = _columns(evaluations, with_std=False)
    left = width - sum(column.shortened().width for column in means)
    most = max(min(width // 3, left), LONG_NAME)
    return max([len(INDENT), *(len(name) for name in names if len(name) <= most)])


def _fitting(evaluations: Sequence[Evaluation], room: int) -> list[list[Column]]:
    """As much of the metrics as there is room for beside the names; one part, or as
    many as it takes."""
    means = _columns(evaluations, with_std=False)
    short = [column.shortened() for column in means]
    for columns in (_columns(evaluations, with_std=True), means, short):
        if sum(column.width for column in columns) <= room:
            return [columns]
    parts = fitting([column.width for column in short], room)
    return [[short[i] for i in part] for part in parts]


def _columns(evaluations: Sequence[Evaluation], *, with_std: bool) -> list[Column]:
    def number(values: np.ndarray) -> str:
        mean, std = mean_and_std(values)
        return f"{mean:z.2f} ± {std:.2f}" if with_std else f"{mean:z.2f}"

    return [
        Column([metric.label], [number(row.metrics[name]) for row in evaluations])
        for name, metric in shown([row.metrics for row in evaluations]).items()
    ]


def _lines(
    evaluations: Sequence[Evaluation],
    names: Sequence[str],
    beside: int,
    columns: Sequence[Column],
) -> Iterator[Text]:
    """A part of the table, with an empty line before it and one behind."""
    yield Text()
    height = max(len(column.label) for column in columns)
    # Labels stand on the rule, however many lines they take.
    labels = [[""] * (height - len(c.label)) + c.label for c in columns]
    for line in zip(*labels, strict=True):
        yield Text(" " * beside + _right(line, columns), "bold")
    yield Text(" " + "─" * (beside - 1 + sum(column.width for column in columns)))
    setup = None
    numbers = zip(*(column.numbers for column in columns), strict=True)
    for row, name, line in zip(evaluations, names, numbers, strict=True):
        if row.setup != setup:
            yield from [Text()] if setup is not None else []
            yield Text(f" {row.setup}", "bold")
            setup = row.setup
        if len(name) > beside:
            yield Text(name)
            name = ""
        yield Text(name.ljust(beside) + _right(line, columns))
    yield Text()


def _right(texts: Sequence[str], columns: Sequence[Column]) -> str:
    return "".join(t.rjust(c.width) for t, c in zip(texts, columns, strict=True))
