"""Contestants compared on setups, by one protocol: numbers, tests and aggregates."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol as Typed
from typing import runtime_checkable

import numpy as np
from jaxtyping import Float

from plato.domains.setups import Setup, distinct
from plato.errors import PlatoError
from plato.evaluation.aggregates import (
    STATISTICS,
    Estimate,
    Profile,
    Sample,
    Scale,
    estimate,
    improvement,
    mean,
    profile,
)
from plato.evaluation.contestants import Contestant
from plato.evaluation.metrics import METRICS, mean_and_std
from plato.evaluation.protocols import Protocol, Result
from plato.evaluation.significance import (
    Family,
    PairedTest,
    best_of,
    bonferroni,
    crossed_test,
)


@runtime_checkable
class Source(Typed):
    """Where results come from: an `Examiner` that plays, or what was played before."""

    @property
    def protocol(self) -> Protocol: ...

    def check(
        self, contestants: Sequence[Contestant], setups: Sequence[Setup]
    ) -> None: ...

    def result(self, contestant: Contestant, setup: Setup) -> Result: ...


THRESHOLDS = np.linspace(0.0, 1.0, 101)
"""Of performance profiles."""


@dataclass(frozen=True)
class Cell:
    """One contestant on one setup by one metric."""

    mean: float
    std: float
    """The sample's, over all episodes."""
    interval: Estimate | None
    """Of the mean, over trainings, or a given policy's episodes (field's protocol)."""
    bold: bool
    """Whether it is best, beyond doubt, by the protocol's rule."""
    test: PairedTest | None
    """The best against this one (paper's protocol)."""


@dataclass(frozen=True)
class Summary:
    """One metric over all setups, normalised so that 1 is best (field's protocol)."""

    scales: Mapping[str, Scale]
    aggregates: Mapping[str, Mapping[str, Estimate]]
    """For each contestant, each of STATISTICS."""
    improvement: Mapping[tuple[str, str], Estimate]
    """For each ordered pair, the chance that the first beats the second."""
    samples: Mapping[str, Sample]
    """The scores behind it, normalised."""

    @cached_property
    def profiles(self) -> Mapping[str, Profile]:
        """Shares of trainings above each of THRESHOLDS; slow, and few ask for it."""
        return {name: profile(own, THRESHOLDS) for name, own in self.samples.items()}


@dataclass(frozen=True)
class Comparison:
    """All that tables, plots and files show."""

    protocol: Protocol
    contestants: tuple[str, ...]
    trained: tuple[str, ...]
    """The contestants that are methods with trainings."""
    setups: tuple[str, ...]
    metrics: tuple[str, ...]
    results: Mapping[tuple[str, str], Result]
    """By contestant and setup."""
    cells: Mapping[tuple[str, str, str], Cell]
    """By contestant, setup and metric."""
    families: Mapping[tuple[str, str], Family]
    """By setup and metric (paper's protocol)."""
    summaries: Mapping[str, Summary]
    """By metric (field's protocol)."""
    optimum: Mapping[str, float]
    """By setup, the best possible return, where it is known."""

    def trainings(self, contestant: str) -> tuple[int, int]:
        """How many trainings stand behind a contestant: on the setup with the fewest,
        and on that with the most; none behind a given policy."""
        if contestant not in self.trained:
            return 0, 0
        counts = [len(self.results[contestant, s].played) for s in self.setups]
        return min(counts), max(counts)


def check_metrics(names: Sequence[str]) -> tuple[str, ...]:
    """The metrics asked for, each once; all of them if none is."""
    for name in names:
        if name not in METRICS:
            known = ", ".join(METRICS)
            raise PlatoError(f"There is no metric {name!r}; choose from: {known}.")
    return tuple(dict.fromkeys(names)) or tuple(METRICS)


def _all_have(
    metric: str, results: Mapping[tuple[str, str], Result], *, asked: Sequence[str]
) -> bool:
    """Whether every result has a metric; refused where one that was asked for has not.

    Burnouts are counted in wildfire alone.
    """
    without = [
        result.setup
        for result in results.values()
        if any(metric not in played.metrics for played in result.played)
    ]
    if without and metric in asked:
        raise PlatoError(f"{without[0]} has no metric {metric!r}.")
    return not without


def compare(
    contestants: Sequence[Contestant],
    setups: Sequence[Setup],
    examiner: Source,
    *,
    metrics: Sequence[str] = (),
    optimum: Mapping[str, float] | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> Comparison:
    """Plays everything and compares it; `report` hears what is being played."""
    setups = distinct(setups)
    names = tuple(contestant.name for contestant in contestants)
    asked = check_metrics(metrics)
    for name in names:
        if names.count(name) > 1:
            raise PlatoError(f"Two rows are called {name!r}; name one NAME=RUN.")
    optimum = _check_optimum(optimum or {}, [setup.name for setup in setups])
    examiner.check(contestants, setups)
    results = {}
    for setup in setups:
        for contestant in contestants:
            report(f"{contestant.name} on {setup.name}")
            results[contestant.name, setup.name] = examiner.result(contestant, setup)
    asked = tuple(name for name in asked if _all_have(name, results, asked=metrics))
    trained = tuple(c.name for c in contestants if c.trainings)
    where = tuple(setup.name for setup in setups)
    cells: dict[tuple[str, str, str], Cell] = {}
    families, summaries = {}, {}
    for metric in asked:
        for setup in where:
            column = [results[name, setup] for name in names]
            if examiner.protocol.name == "paper":
                family = _family(column, metric)
                if family is not None:
                    families[setup, metric] = family
                made = _paper_cells(column, metric, family)
            else:
                made = _field_cells(column, metric)
            for name, cell in made.items():
                cells[name, setup, metric] = cell
        # Alone and without an optimum there is nothing to measure scores against.
        comparable = len(names) > 1 or (
            metric == "return" and set(where) <= set(optimum)
        )
        if examiner.protocol.name == "field" and _sign(metric) and comparable:
            rows = {name: [results[name, setup] for setup in where] for name in names}
            summaries[metric] = _summary(rows, metric, optimum)
    return Comparison(
        protocol=examiner.protocol,
        contestants=names,
        trained=trained,
        setups=where,
        metrics=asked,
        results=results,
        cells=cells,
        families=families,
        summaries=summaries,
        optimum=optimum,
    )


def _check_optimum(
    optimum: Mapping[str, float], setups: Sequence[str]
) -> Mapping[str, float]:
    for setup, value in optimum.items():
        if setup not in setups:
            raise PlatoError(
                f"An optimum is given for {setup!r}, which is not compared here "
                f"({', '.join(setups)})."
            )
        if not 0 < value < float("inf"):
            raise PlatoError(
                f"The optimum of {setup} is {value:g}; shares of it need it positive."
            )
    return dict(optimum)


def _sign(metric: str) -> int:
    """1 where more is better, -1 where less is, 0 where neither is."""
    return {True: 1, False: -1, None: 0}[METRICS[metric].higher_is_better]


def _family(column: Sequence[Result], metric: str) -> Family | None:
    sign = _sign(metric)
    if not sign or len(column) < 2:
        return None
    models = {result.contestant: result.by_seed(metric) for result in column}
    return best_of(models, higher_is_better=sign > 0)


def _paper_cells(
    column: Sequence[Result], metric: str, family: Family | None
) -> dict[str, Cell]:
    cells = {}
    for result in column:
        name = result.contestant
        best = family is not None and family.significant and family.best == name
        test = None if family is None else family.tests.get(name)
        cells[name] = Cell(*mean_and_std(result.episodes(metric)), None, best, test)
    return cells


def _field_cells(column: Sequence[Result], metric: str) -> dict[str, Cell]:
    cells = {}
    for i, result in enumerate(column):
        own = estimate(_sample([result], metric, seed=i), mean)
        std = mean_and_std(result.episodes(metric))[1]
        bold = _beats_all(result, column, metric)
        cells[result.contestant] = Cell(own.value, std, own, bold, None)
    return cells


def _sample(results: Sequence[Result], metric: str, *, seed: int) -> Sample:
    """A contestant on some setups, by a metric as it is."""
    if results[0].trained_on:
        scores = [result.by_training(metric) for result in results]
        return Sample.of_trainings(scores, seed=seed)
    return Sample.of_episodes([r.episodes(metric) for r in results], seed=seed)


def _beats_all(one: Result, column: Sequence[Result], metric: str) -> bool:
    """Whether it is better than every other beyond its trainings and episodes.

    A single training says nothing of others, and nobody is best beside it.
    """
    single = any(r.trained_on and len(r.played) == 1 for r in column)
    if single or len(column) == 1 or not _sign(metric):
        return False
    tests = [
        crossed_test(one.runs(metric), other.runs(metric))
        for other in column
        if other is not one
    ]
    level = bonferroni(len(column))
    return all(t.p < level and t.difference * _sign(metric) > 0 for t in tests)


def _summary(
    rows: Mapping[str, Sequence[Result]], metric: str, optimum: Mapping[str, float]
) -> Summary:
    sign = _sign(metric)
    raw = {
        name: _signed(_sample(results, metric, seed=i), sign)
        for i, (name, results) in enumerate(rows.items())
    }
    setups = [result.setup for result in next(iter(rows.values()))]
    best = optimum if metric == "return" else {}
    scales = [
        _scale([sample.scores[i] for sample in raw.values()], best.get(setup))
        for i, setup in enumerate(setups)
    ]
    samples = {name: sample.normalised(scales) for name, sample in raw.items()}
    return Summary(
        scales=dict(zip(setups, scales, strict=True)),
        aggregates={
            name: {label: estimate(own, one) for label, one in STATISTICS.items()}
            for name, own in samples.items()
        },
        improvement={
            (a, b): improvement(samples[a], samples[b])
            for a in samples
            for b in samples
            if a != b
        },
        samples=samples,
    )


def _signed(sample: Sample, sign: int) -> Sample:
    """With more as better."""
    return Sample([sign * s for s in sample.scores], [sign * s for s in sample.redrawn])


def _scale(scores: Sequence[Float[np.ndarray, " _"]], optimum: float | None) -> Scale:
    """Shares of the optimum where it is known, else from worst score to best."""
    if optimum is not None:
        return Scale(0.0, optimum)
    everything = np.concatenate(scores)
    return Scale(float(everything.min()), float(everything.max()))
