"""Tables of our own, from what the paper's tables are made of."""

from collections.abc import Sequence

import numpy as np

from plato.evaluation.comparison import Comparison
from plato.evaluation.contestants import grid_of, level_of
from plato.evaluation.layout import ABSENT, Column, Entry, Report, Row, Table
from plato.evaluation.metrics import METRICS
from plato.evaluation.published import paper_cells
from plato.evaluation.significance import paired_test
from plato.experiments.recorded import Done

SURE = 0.01
"""The level at which a trained row is said to beat a given policy."""
TESTED = ("return", "reward_per_fight", "noop_percent", "burnouts", "putouts")
"""The metrics for which the paper says who is best."""


def shares_of_optimum(comparison: Comparison) -> Report | None:
    """Mean returns as percentages of the best possible ones, where these are known."""
    setups = [s for s in comparison.setups if s in comparison.optimum]
    if not setups:
        return None

    def share(name: str, setup: str) -> float:
        mean = comparison.cells[name, setup, "return"].mean
        return 100 * mean / comparison.optimum[setup]

    rows = tuple(
        Row(name, tuple(Entry(f"{share(name, setup):z.1f} %") for setup in setups))
        for name in comparison.contestants
    )
    table = Table("share of the optimal return", _columns(setups), (rows,))
    note = (
        "The optimum of each setup is exact, by backward induction over all of its "
        "states (`plato solve`); it knows how many steps are left, which no policy of "
        "these tables is told."
    )
    return Report((table,), f"{comparison.protocol.name} protocol", note)


def significant_best(comparison: Comparison) -> Report | None:
    """Which row is significantly best by each metric: ours, and the paper's."""
    if comparison.protocol.name != "paper":
        return None
    columns, ours, theirs = [], [], []
    for metric in TESTED:
        for setup in comparison.setups:
            grid, level = grid_of(setup) or "", level_of(setup) or ""
            paper = paper_cells("native", metric, grid, level)
            bold = [
                name
                for name in comparison.contestants
                if comparison.cells[name, setup, metric].bold
            ]
            columns.append(Column(METRICS[metric].label, f"{_times(grid)} {level}"))
            ours.append(Entry(", ".join(bold) or ABSENT))
            printed = [name for name, cell in paper.items() if cell.bold]
            theirs.append(Entry(", ".join(printed) or ABSENT))
    rows = (Row("here", tuple(ours)), Row("paper", tuple(theirs)))
    agree = sum(a == b for a, b in zip(ours, theirs, strict=True))
    note = (
        f"{ABSENT}: no row is significantly better than every other. {agree} of "
        f"{len(ours)} columns agree."
    )
    return Report((Table("", tuple(columns), (rows,)),), "", note)


def against_given(comparison: Comparison) -> Report | None:
    """Every trained row against every given policy, by paired tests of returns."""
    given = [n for n in comparison.contestants if n not in comparison.trained]
    if not given:
        return None

    def entry(ours: str, theirs: str, setup: str) -> Entry:
        first = comparison.results[ours, setup].by_seed("return")
        second = comparison.results[theirs, setup].by_seed("return")
        test = paired_test(first, second, SURE)
        worse = "worse, " if test.favours < 0 else ""
        return Entry(f"{worse}{_p(test.p)}", test.favours > 0 and test.p < SURE)

    sections = tuple(
        tuple(
            Row(
                f"{ours} over {theirs}",
                tuple(entry(ours, theirs, setup) for setup in comparison.setups),
            )
            for theirs in given
        )
        for ours in comparison.trained
    )
    seeds = comparison.protocol.seeds
    note = (
        f"p of two-sided paired tests over seeds {seeds.start}–{seeds.stop - 1}, a "
        f"row's trainings averaged on each of them (t where differences are normal, "
        f"else Wilcoxon's signed ranks). Bold: better, with p < {SURE}."
    )
    table = Table("return, p", _columns(comparison.setups), sections)
    return Report((table,), f"{comparison.protocol.name} protocol", note)


def compute(found: Sequence[Done]) -> Report:
    """What all of it took, row by row."""
    columns = ("trainings", "steps each", "seconds each", "hours in all", "on")
    rows = []
    for protocol in dict.fromkeys(one.cell.protocol.name for one in found):
        trained = [
            one
            for one in found
            if one.cell.trained_on and one.cell.protocol.name == protocol
        ]
        for name in dict.fromkeys(one.cell.row.name for one in trained):
            data = [o.entry.data for o in trained if o.cell.row.name == name]
            seconds = np.asarray([sum(d["seconds"].values()) for d in data])
            steps = np.mean([d["steps"] for d in data])
            devices = dict.fromkeys(d["environment"]["device"] for d in data)
            cells = (
                f"{len(data)}",
                f"{steps / 1e6:.2f} M",
                f"{seconds.mean():.1f}",
                f"{seconds.sum() / 3600:.2f}",
                ", ".join(devices),
            )
            label = f"{name}, {protocol} protocol"
            rows.append(Row(label, tuple(map(Entry, cells))))
    table = Table(
        "", tuple(Column("Compute spent", c) for c in columns), (tuple(rows),)
    )
    note = (
        "Seconds of one training with its evaluation: its share of the time that all "
        "trainings of its program took together. The paper reports 3 to 5 CPU-days for "
        "each of its trainings."
    )
    return Report((table,), "", note)


def _columns(setups: Sequence[str]) -> tuple[Column, ...]:
    return tuple(
        Column(_times(grid_of(setup) or setup), level_of(setup) or setup)
        for setup in setups
    )


def _times(grid: str) -> str:
    return grid.replace("x", "×")


def _p(p: float) -> str:
    return f"{p:.3f}" if p >= 0.001 else f"{p:.0e}"
