"""Aggregates: by hand, against SciPy, and how often intervals hold the truth."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from plato.evaluation import aggregates
from plato.evaluation.aggregates import (
    STATISTICS,
    Sample,
    Scale,
    chance_of_improvement,
    estimate,
    improvement,
    interquartile_mean,
    mean,
    median,
    optimality_gap,
    profile,
)


@pytest.mark.parametrize("count", [2, 3, 5, 9])
def test_what_intervals_over_few_trainings_hold(count):
    rng = np.random.default_rng(count)
    trainings = rng.normal(size=(4000, count))
    again = rng.integers(count, size=(800, count))
    means = np.stack([trainings[:, one].mean(axis=1) for one in again])
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    held = 100 * np.mean((low <= 0) & (high >= 0))
    assert held == pytest.approx(aggregates.COVERED[count], abs=2)


def numbers(*values: float) -> np.ndarray:
    return np.asarray(values, float)


def test_statistics_by_hand():
    strata = [numbers(1, 2, 3, 4), numbers(5, 6, 7, 8), numbers(0, 0, 0, 100)]
    assert mean(strata) == pytest.approx((2.5 + 6.5 + 25) / 3)
    assert median(strata) == 6.5
    # Of 0 0 0 1 2 3 | 4 5 6 7 8 100, the middle six are 1 … 6.
    assert interquartile_mean(strata) == pytest.approx(3.5)
    assert optimality_gap([numbers(0.5, 1.5), numbers(1.0, 0.0)]) == pytest.approx(
        1 - (0.5 + 1 + 1 + 0) / 4
    )


def test_the_interquartile_mean_is_scipys_trimmed_mean():
    scores = np.random.default_rng(0).normal(size=(3, 7))
    expected = stats.trim_mean(scores.ravel(), 0.25)
    assert interquartile_mean(list(scores)) == pytest.approx(expected)


def test_chance_of_improvement_by_hand():
    """1 against 1 and 3: ½ and 0; 2 against 1 and 3: 1 and 0."""
    chance = chance_of_improvement([numbers(1, 2)], [numbers(1, 3)])
    assert chance == pytest.approx(1.5 / 4)
    both = chance_of_improvement(
        [numbers(1, 2), numbers(9)], [numbers(1, 3), numbers(8)]
    )
    assert both == pytest.approx((1.5 / 4 + 1) / 2)


SCORES = arrays(float, st.integers(1, 8), elements=st.integers(0, 5).map(float))


@given(SCORES, SCORES)
def test_chance_of_improvement_is_the_mann_whitney_statistic(ours, theirs):
    chance = float(chance_of_improvement([ours], [theirs]))
    expected = stats.mannwhitneyu(ours, theirs, method="asymptotic").statistic
    assert chance == pytest.approx(expected / (len(ours) * len(theirs)))
    assert chance == pytest.approx(1 - float(chance_of_improvement([theirs], [ours])))


@given(st.lists(SCORES, min_size=1, max_size=4))
def test_intervals_hold_their_value_and_stay_within_the_data(strata):
    sample = Sample.of_trainings(strata)
    lowest, highest = min(map(np.min, strata)), max(map(np.max, strata))
    for name, statistic in STATISTICS.items():
        found = estimate(sample, statistic)
        assert found.low <= found.high
        if name != "optimality gap":
            assert lowest - 1e-9 <= found.low
            assert found.high <= highest + 1e-9
    constant = estimate(Sample.of_trainings([numbers(4, 4, 4)]), mean)
    assert (constant.value, constant.low, constant.high) == (4, 4, 4)


def test_draws_stay_within_their_setup_and_repeat_with_the_seed():
    strata = [numbers(1, 2, 3), numbers(10, 20)]
    one, again = (Sample.of_trainings(strata, seed=3) for _ in range(2))
    for own, redrawn, other in zip(strata, one.redrawn, again.redrawn, strict=True):
        assert set(np.unique(redrawn)) == set(own)
        assert redrawn.shape == (aggregates.RESAMPLES, len(own))
        np.testing.assert_array_equal(redrawn, other)
    different = Sample.of_trainings(strata, seed=4)
    assert (different.redrawn[0] != one.redrawn[0]).any()


def test_a_given_policy_varies_by_its_episodes():
    episodes = np.random.default_rng(1).normal(5, 2, 400)
    found = estimate(Sample.of_episodes([episodes]), mean)
    half = 1.96 * episodes.std(ddof=1) / 20
    assert found.value == pytest.approx(episodes.mean())
    assert found.low == pytest.approx(episodes.mean() - half, abs=0.02)
    assert found.high == pytest.approx(episodes.mean() + half, abs=0.02)


@pytest.mark.parametrize("name", ["mean", "IQM"])
def test_intervals_hold_the_truth_about_as_often_as_they_say(name, monkeypatch):
    """400 experiments of 10 trainings on 3 setups, all centred on their true value."""
    monkeypatch.setattr(aggregates, "RESAMPLES", 500)
    rng = np.random.default_rng(2)
    truth, held = np.asarray([0.0, 5.0, 10.0]), 0
    shift = mean([truth]) if name == "mean" else 0.0
    for experiment in range(400):
        # For the IQM all setups share their centre, so that it is known.
        centre = truth if name == "mean" else np.zeros(3)
        strata = list(centre[:, None] + rng.normal(0, 2, (3, 10)))
        sample = Sample.of_trainings(strata, seed=experiment)
        found = estimate(sample, STATISTICS[name])
        held += found.low <= shift <= found.high
    assert 0.90 <= held / 400 <= 0.98


def test_improvement_has_an_interval_around_its_value():
    rng = np.random.default_rng(3)
    better = Sample.of_trainings([rng.normal(2, 1, 10)], seed=0)
    worse = Sample.of_trainings([rng.normal(0, 1, 10)], seed=1)
    found = improvement(better, worse)
    assert 0.5 < found.low < found.value < found.high <= 1
    twos = Sample.of_trainings([numbers(2, 2)])
    same = improvement(twos, twos)
    assert (same.value, same.low, same.high) == (0.5, 0.5, 0.5)


def test_profiles_by_hand():
    sample = Sample.of_trainings([numbers(0.1, 0.5), numbers(0.5, 0.9, 0.9)])
    found = profile(sample, numbers(0.0, 0.1, 0.5, 0.9))
    expected = [1, (1 / 2 + 1) / 2, (0 + 2 / 3) / 2, 0]
    np.testing.assert_allclose(found.value, expected)
    assert (found.low <= found.value).all()
    assert (found.value <= found.high).all()


def test_scales():
    scale = Scale(-6.0, 14.0)
    np.testing.assert_allclose(scale.apply(numbers(-6, 4, 14, 24)), [0, 0.5, 1, 1.5])
    flat = Scale(3.0, 3.0)
    np.testing.assert_array_equal(flat.apply(numbers(3, 3)), [1, 1])
    sample = Sample.of_trainings([numbers(-6, 14), numbers(3, 3)])
    found = sample.normalised([scale, flat])
    assert [s.tolist() for s in found.scores] == [[0, 1], [1, 1]]
    assert found.redrawn[0].max() == 1
