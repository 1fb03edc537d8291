"""Tables of our own, from what the paper's tables are made of."""

from collections.abc import Sequence

import numpy as np

from plato.evaluation.comparison import Comparison
from plato.evaluation.contestants import grid_of, level_of
from plato.evaluation.layout import ABSENT, Column, Entry, Report, Row, Table
from plato.evaluation.metrics import METRICS
from plato.evaluation.published import ALL_MODELS, PaperCell, paper_cells
from plato.evaluation.significance import CrossedTest, crossed_test, paired_test
from plato.experiments.recorded import Done

SURE = 0.01
"""The level at which a trained row is said to beat another, or a given policy."""
TESTED = ("return", "reward_per_fight", "noop_percent", "burnouts", "putouts")
"""The metrics for which the paper says who is best."""
EVENTS = ("zero_suppressant", "new_fires")
"""What the paper counts as openness: of agents, and of tasks."""


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
    columns, ours, theirs = _who_is_best(comparison)
    rows = (
        Row("here", tuple(map(Entry, ours))),
        Row("paper", tuple(map(Entry, theirs))),
    )
    agree, all_columns = agreement(comparison)
    note = (
        f"{ABSENT}: no row is significantly better than every other. {agree} of "
        f"{all_columns} columns agree."
    )
    return Report((Table("", tuple(columns), (rows,)),), "", note)


def agreement(comparison: Comparison) -> tuple[int, int]:
    """In how many columns the significantly best is the paper's, and of how many."""
    _, ours, theirs = _who_is_best(comparison)
    return sum(a == b for a, b in zip(ours, theirs, strict=True)), len(ours)


def _who_is_best(
    comparison: Comparison,
) -> tuple[list[Column], list[str], list[str]]:
    """For each metric and setup, its column and who is best: here, and in the paper."""
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
            ours.append(", ".join(bold) or ABSENT)
            printed = [name for name, cell in paper.items() if cell.bold]
            theirs.append(", ".join(printed) or ABSENT)
    return columns, ours, theirs


def surely_beats(comparison: Comparison, ours: str, theirs: str, setup: str) -> bool:
    """Whether a trained row has higher returns than a given policy beyond doubt."""
    return _sure(_test(comparison, ours, theirs, setup))


def _sure(test: CrossedTest) -> bool:
    return test.difference > 0 and test.p < SURE


def _test(comparison: Comparison, ours: str, theirs: str, setup: str) -> CrossedTest:
    """Over trainings and episodes."""
    first, second = (comparison.results[name, setup] for name in (ours, theirs))
    return crossed_test(first.runs("return"), second.runs("return"))


def against_given(comparison: Comparison) -> Report | None:
    """Every trained row against every given policy, by the protocol's kind of test."""
    given = [n for n in comparison.contestants if n not in comparison.trained]
    if not given:
        return None
    field = comparison.protocol.name == "field"
    entry = _over_trainings if field else _over_seeds
    sections = tuple(
        tuple(
            Row(
                f"{ours} over {theirs}",
                tuple(entry(comparison, ours, theirs, s) for s in comparison.setups),
            )
            for theirs in given
        )
        for ours in comparison.trained
    )
    span = f"{comparison.protocol.seeds.start}–{comparison.protocol.seeds.stop - 1}"
    note = (
        f"p of two-sided t-tests, each for itself, of whether trainings of the row do "
        f"better than the policy: the error of a difference is that over the row's "
        f"trainings and that over seeds {span} together, its degrees of freedom are "
        f"Welch's. Always: by as much in every training and episode."
        if field
        else f"p of two-sided paired tests over seeds {span}, a row's trainings "
        f"averaged on each of them (t where differences are normal, else Wilcoxon's "
        f"signed ranks): of these trainings, as the paper tests, not of others."
    )
    note += f" Bold: better, with p < {SURE}."
    table = Table("return, p", _columns(comparison.setups), sections)
    return Report((table,), f"{comparison.protocol.name} protocol", note)


def first_over_others(comparison: Comparison) -> Report | None:
    """The first trained row against each of the others, over trainings and episodes."""
    if comparison.protocol.name != "field" or len(comparison.trained) < 2:
        return None
    first, *others = comparison.trained

    def entry(other: str, setup: str) -> Entry:
        test = _test(comparison, first, other, setup)
        return Entry(f"{test.difference:+z.2f}, {_p(test.p)}", _sure(test))

    rows = tuple(
        Row(f"{first} over {o}", tuple(entry(o, s) for s in comparison.setups))
        for o in others
    )
    span = f"{comparison.protocol.seeds.start}–{comparison.protocol.seeds.stop - 1}"
    note = (
        f"Difference of mean returns, and p of a two-sided t-test, each for itself, "
        f"whose error is that over the trainings of both rows and that over seeds "
        f"{span} together, with Welch's degrees of freedom. Bold: better, with "
        f"p < {SURE}."
    )
    table = Table("return, difference and p", _columns(comparison.setups), (rows,))
    return Report((table,), "field protocol", note)


def _over_trainings(
    comparison: Comparison, ours: str, theirs: str, setup: str
) -> Entry:
    test = _test(comparison, ours, theirs, setup)
    worse = "worse, " if test.difference < 0 else ""
    p = "always" if test.difference and not test.error else _p(test.p)
    return Entry(f"{worse}{p}", _sure(test))


def _over_seeds(comparison: Comparison, ours: str, theirs: str, setup: str) -> Entry:
    pair = [
        comparison.results[name, setup].by_seed("return") for name in (ours, theirs)
    ]
    test = paired_test(pair[0], pair[1], SURE)
    worse = "worse, " if test.favours < 0 else ""
    return Entry(f"{worse}{_p(test.p)}", test.favours > 0 and test.p < SURE)


def openness_events(comparison: Comparison) -> Report | None:
    """How often agents run dry and fires begin, over all models: ours, the paper's."""
    if comparison.protocol.name != "paper":
        return None
    setups = comparison.setups
    models = [n for n in comparison.contestants if n in _papers_models(setups)]
    if not models:
        return None

    def row(label: str, cells: Sequence[PaperCell | None]) -> Row:
        texts = [f"{c.mean:z.2f} ± {c.std:.2f}" if c else ABSENT for c in cells]
        return Row(label, tuple(map(Entry, texts)))

    tables = tuple(
        Table(
            METRICS[metric].label,
            _columns(setups),
            (
                (
                    row(
                        "here", [_pooled(comparison, models, s, metric) for s in setups]
                    ),
                    row("paper", [_printed_events(s, metric) for s in setups]),
                ),
            ),
        )
        for metric in EVENTS
    )
    absent = [name for name in _papers_models(setups) if name not in models]
    without = f", without {', '.join(absent)} here" if absent else ""
    note = (
        f"Events in an episode of 100 steps: mean ± standard deviation over the "
        f"episodes of {', '.join(models)} together{without}. Here every model weighs "
        f"the same; the paper does not say how its own are weighed."
    )
    return Report(tables, "paper protocol", note)


def _papers_models(setups: Sequence[str]) -> list[str]:
    """The models of the paper's native tables."""
    places = [(grid_of(setup) or "", level_of(setup) or "") for setup in setups]
    return list(
        dict.fromkeys(
            name for place in places for name in paper_cells("native", "return", *place)
        )
    )


def _pooled(
    comparison: Comparison, models: Sequence[str], setup: str, metric: str
) -> PaperCell:
    """Mean and spread of all episodes of some models, each with the same weight."""
    episodes = [comparison.results[name, setup].episodes(metric) for name in models]
    means = np.asarray([one.mean() for one in episodes])
    inner = np.mean([one.var() for one in episodes])
    return PaperCell(float(means.mean()), float(np.sqrt(inner + means.var())), False)


def _printed_events(setup: str, metric: str) -> PaperCell | None:
    grid, level = grid_of(setup) or "", level_of(setup) or ""
    return paper_cells("openness_events", metric, grid, level).get(ALL_MODELS)


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
        "trainings of its program took together; programs that shared a device count "
        "its time once each. The paper reports 3 to 5 CPU-days for each of its "
        "trainings."
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
    if p == 0:  # below what a float can say
        return "< 1e-300"
    return f"{p:.3f}" if p >= 0.001 else f"{p:.0e}"
