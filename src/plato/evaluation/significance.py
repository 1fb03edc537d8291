"""Who is significantly best: the paper's Shapiro–Wilk-adaptive paired tests.

Every model plays the same seeds, so two models are compared by their differences seed
by seed. Normal differences are tested by the paired t-test, others by Wilcoxon's
signed ranks, both two-sided and at a level that is shared by the family of models
(Bonferroni: 0.05 / k for k models).

That a method, rather than its trainings at hand, beats another or a given policy is
tested over trainings and episodes both.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float
from scipy import stats

LEVEL = 0.05
"""Chance of one false claim in a family, before it is shared among its tests."""
ROUNDING = 1e-9
"""Differences below this part of the numbers compared are differences of rounding."""
SHAPIRO_LEAST, SHAPIRO_MOST = 3, 5000
"""Numbers of differences for which the Shapiro–Wilk test is defined and calibrated."""

Seeds = Float[np.ndarray, " seed"]
Runs = Float[np.ndarray, "run seed"]
OtherRuns = Float[np.ndarray, "other seed"]


@dataclass(frozen=True)
class PairedTest:
    """One model against another, on the same seeds."""

    kind: Literal["t", "wilcoxon", "equal"]
    """`equal`: no seed tells them apart, so there is nothing to test and p is 1."""
    p: float
    normality: float | None
    """Shapiro–Wilk's p of the differences; None where it is not defined."""
    favours: Literal[-1, 0, 1]
    """Whom the statistic favours: 1 the first, -1 the second, 0 neither."""
    seeds: int


@dataclass(frozen=True)
class CrossedTest:
    """One model against another, over their trainings and their episodes."""

    difference: float
    """Of the means; positive where the first's is higher."""
    error: float
    """Its standard error: 0 where no training and no episode tells otherwise."""
    p: float


@dataclass(frozen=True)
class Family:
    """All models of one table's column: the best, and its test against every other."""

    best: str
    level: float
    tests: Mapping[str, PairedTest]
    """For each of the others, the best against it."""

    @property
    def significant(self) -> bool:
        """Whether the best beats every other (and there is another)."""
        return bool(self.tests) and all(
            test.p < self.level and test.favours == 1 for test in self.tests.values()
        )


def bonferroni(models: int) -> float:
    """The level of one test in a family of k models."""
    return LEVEL / models


def paired_test(first: Seeds, second: Seeds, level: float) -> PairedTest:
    """Whether two models differ, seed by seed; defined for any data.

    The t-test needs normal differences. Fewer than three, or all the same, are not
    known to be normal and are left to Wilcoxon's test; for more than 5,000, where
    Shapiro–Wilk is not calibrated, the central limit theorem stands in for it.
    """
    differences = _differences(first, second)
    seeds = len(differences)
    if not differences.any():
        return PairedTest("equal", 1.0, None, 0, seeds)
    spread = np.ptp(differences)
    constant = spread <= ROUNDING * np.abs(differences).max()
    if seeds > SHAPIRO_MOST and not constant:
        return _t(differences, None)
    if seeds < SHAPIRO_LEAST or constant:
        return _wilcoxon(differences, None)
    # The statistic does not depend on the unit; a unit near 1 keeps it exact.
    normality = float(stats.shapiro(differences / spread).pvalue)
    if normality >= level:
        return _t(differences, normality)
    return _wilcoxon(differences, normality)


def crossed_test(first: Runs, second: OtherRuns) -> CrossedTest:
    """Whether other trainings of two models, in other episodes, would differ.

    Each model has a row for each of its trainings; a given policy has one, and no error
    of training. All play the same seeds, so the mean difference errs by which trainings
    there are of each, and by which seeds. Its variance is at most the sum of these,
    estimated by the training means and by the differences seed by seed; t is two-sided,
    with Welch's degrees of freedom.
    """
    differences = _differences(first.mean(axis=0), second.mean(axis=0))
    mean = float(differences.mean())
    samples = [differences, *(rows.mean(axis=1) for rows in (first, second))]
    parts = [(_variance(s) / len(s), len(s) - 1) for s in samples if len(s) > 1]
    variance = sum(part for part, _ in parts)
    if variance == 0:
        return CrossedTest(mean, 0.0, 0.0 if mean else 1.0)
    degrees = variance**2 / sum(part**2 / free for part, free in parts)
    error = variance**0.5
    p = 2 * float(stats.t.sf(abs(mean) / error, degrees))
    return CrossedTest(mean, error, p)


def best_of(models: Mapping[str, Seeds], *, higher_is_better: bool) -> Family:
    """The model with the best mean, tested against each of the others."""
    sign = 1.0 if higher_is_better else -1.0
    gains = {name: sign * values for name, values in models.items()}
    best = max(gains, key=lambda name: gains[name].mean())
    level = bonferroni(len(models))
    tests = {
        name: paired_test(gains[best], values, level)
        for name, values in gains.items()
        if name != best
    }
    return Family(best, level, tests)


def _variance(values: Float[np.ndarray, " n"]) -> float:
    """The sample's; none where values differ by rounding alone."""
    if np.ptp(values) <= ROUNDING * np.abs(values).max():
        return 0.0
    return float(values.var(ddof=1))


def _differences(first: Seeds, second: Seeds) -> Seeds:
    differences = first - second
    size = np.maximum(np.abs(first), np.abs(second))
    return np.where(np.abs(differences) <= ROUNDING * size, 0.0, differences)


def _t(differences: Seeds, normality: float | None) -> PairedTest:
    result: Any = stats.ttest_1samp(differences, 0.0)
    favours = _sign(float(result.statistic))
    return PairedTest("t", float(result.pvalue), normality, favours, len(differences))


def _wilcoxon(differences: Seeds, normality: float | None) -> PairedTest:
    # Ranks that differ by rounding alone are ties.
    unit = ROUNDING * np.abs(differences).max()
    differences = np.round(differences / unit) * unit
    result: Any = stats.wilcoxon(differences)
    p = float(result.pvalue)
    moved = differences[differences != 0]
    ranks = stats.rankdata(np.abs(moved)) * np.sign(moved)
    favours = _sign(float(ranks.sum()))
    return PairedTest("wilcoxon", p, normality, favours, len(differences))


def _sign(value: float) -> Literal[-1, 0, 1]:
    return 1 if value > 0 else -1 if value < 0 else 0
