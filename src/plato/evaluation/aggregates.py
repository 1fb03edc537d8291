"""Results over independent trainings: aggregates and their bootstrap intervals.

As Agarwal et al. propose ("Deep Reinforcement Learning at the Edge of the Statistical
Precipice", 2021). Scores come as one array for each setup (a stratum) with a number for
each training; a bootstrap draws trainings anew within each setup. Every statistic takes
arrays with leading axes, so all resamples are computed at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from jaxtyping import Float
from scipy import stats

RESAMPLES = 5000
COVERAGE = 0.95
COVERED = {2: 50, 3: 75, 4: 79, 5: 84, 6: 85, 7: 87, 8: 89, 9: 90}
"""In how many of 100 cases such an interval over a few trainings holds the mean of many
in truth, their scores being normal; with two or three it is from least to most."""
TRIM = 0.25

Strata: TypeAlias = Sequence[Float[np.ndarray, "*batch _"]]
"""For each setup, the scores of its trainings; setups may differ in their number."""
Statistic: TypeAlias = Callable[[Strata], Float[np.ndarray, "*batch"]]


@dataclass(frozen=True)
class Sample:
    """Scores on each setup, and as they might have come out."""

    scores: Sequence[Float[np.ndarray, " _"]]
    redrawn: Sequence[Float[np.ndarray, "resample _"]]

    @classmethod
    def of_trainings(cls, scores: Strata, *, seed: int = 0) -> "Sample":
        """A method's: each number is one training, and trainings are drawn anew."""
        rng = np.random.default_rng(seed)
        return cls(scores, [_redraw(s, rng) for s in scores])

    @classmethod
    def of_episodes(cls, episodes: Strata, *, seed: int = 0) -> "Sample":
        """A given policy's: its one score is a mean of episodes, which are redrawn."""
        rng = np.random.default_rng(seed)
        redrawn = [_redraw(e, rng).mean(axis=-1, keepdims=True) for e in episodes]
        return cls([e.mean(keepdims=True) for e in episodes], redrawn)

    def normalised(self, scales: Sequence["Scale"]) -> "Sample":
        """In units in which every setup goes from 0 to 1."""
        return Sample(
            [t.apply(s) for t, s in zip(scales, self.scores, strict=True)],
            [t.apply(s) for t, s in zip(scales, self.redrawn, strict=True)],
        )


@dataclass(frozen=True)
class Scale:
    """What counts as 0 and as 1 on a setup when setups are put together."""

    low: float
    high: float

    def apply(
        self, scores: Float[np.ndarray, "*batch run"]
    ) -> Float[np.ndarray, "*batch run"]:
        """Scores as parts of the way from low to high; 1 where there is no way."""
        if self.high <= self.low:
            return np.ones_like(scores)
        return (scores - self.low) / (self.high - self.low)


@dataclass(frozen=True)
class Estimate:
    """A number and the interval it lies in."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Profile:
    """For each threshold, how many of the trainings score above it."""

    thresholds: Float[np.ndarray, " threshold"]
    value: Float[np.ndarray, " threshold"]
    low: Float[np.ndarray, " threshold"]
    high: Float[np.ndarray, " threshold"]


def mean(strata: Strata) -> Float[np.ndarray, "*batch"]:
    """Mean over setups of the mean over trainings."""
    return np.asarray(_of_setups(strata).mean(axis=-1))


def median(strata: Strata) -> Float[np.ndarray, "*batch"]:
    """Median over setups of the mean over trainings."""
    return np.asarray(np.median(_of_setups(strata), axis=-1))


def interquartile_mean(strata: Strata) -> Float[np.ndarray, "*batch"]:
    """Mean of the middle half of all trainings of all setups (IQM)."""
    everything = np.concatenate(strata, axis=-1)
    return np.asarray(stats.trim_mean(everything, TRIM, axis=-1))


def optimality_gap(strata: Strata) -> Float[np.ndarray, "*batch"]:
    """How far scores fall short of 1 on average; more than 1 does not make up for it.

    A mean over all trainings of all setups.
    """
    everything = np.concatenate(strata, axis=-1)
    return np.asarray(1 - np.minimum(everything, 1).mean(axis=-1))


STATISTICS: dict[str, Statistic] = {
    "IQM": interquartile_mean,
    "mean": mean,
    "median": median,
    "optimality gap": optimality_gap,
}


def estimate(sample: Sample, statistic: Statistic) -> Estimate:
    """A statistic with its 95 % stratified bootstrap interval (percentiles)."""
    return _estimate(float(statistic(sample.scores)), statistic(sample.redrawn))


def improvement(first: Sample, second: Sample) -> Estimate:
    """Chance that a training of the first beats one of the second on the same setup.

    The two must be drawn with different seeds, so that they vary independently.
    """
    return _estimate(
        float(chance_of_improvement(first.scores, second.scores)),
        chance_of_improvement(first.redrawn, second.redrawn),
    )


def chance_of_improvement(first: Strata, second: Strata) -> Float[np.ndarray, "*batch"]:
    """Mean over setups of P(X > Y) + P(X = Y) / 2, over all pairs of trainings."""
    chances = [_wins(ours, theirs) for ours, theirs in zip(first, second, strict=True)]
    return np.asarray(np.stack(chances, axis=-1).mean(axis=-1))


def profile(sample: Sample, thresholds: Float[np.ndarray, " threshold"]) -> Profile:
    """The share of trainings above each threshold, averaged over setups."""
    curves = [
        _estimate(float(_above(sample.scores, t)), _above(sample.redrawn, t))
        for t in thresholds
    ]
    return Profile(
        thresholds=thresholds,
        value=np.asarray([curve.value for curve in curves]),
        low=np.asarray([curve.low for curve in curves]),
        high=np.asarray([curve.high for curve in curves]),
    )


def _redraw(
    numbers: Float[np.ndarray, " n"], rng: np.random.Generator
) -> Float[np.ndarray, "resample n"]:
    """The numbers drawn with replacement, many times."""
    return numbers[rng.integers(0, len(numbers), (RESAMPLES, len(numbers)))]


def _of_setups(strata: Strata) -> Float[np.ndarray, "*batch setup"]:
    return np.stack([scores.mean(axis=-1) for scores in strata], axis=-1)


def _above(strata: Strata, threshold: float) -> Float[np.ndarray, "*batch"]:
    return mean([np.asarray(s > threshold, np.float64) for s in strata])


def _wins(
    ours: Float[np.ndarray, "*batch run"], theirs: Float[np.ndarray, "*batch other"]
) -> Float[np.ndarray, "*batch"]:
    difference = ours[..., :, None] - theirs[..., None, :]
    return np.asarray((0.5 + 0.5 * np.sign(difference)).mean(axis=(-2, -1)))


def _estimate(value: float, redrawn: Float[np.ndarray, " resample"]) -> Estimate:
    tail = 100 * (1 - COVERAGE) / 2
    low, high = np.percentile(redrawn, [tail, 100 - tail])
    return Estimate(value, float(low), float(high))
