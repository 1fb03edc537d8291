"""Paired tests: against SciPy on the same data, by hand, and where they degenerate."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from plato.evaluation.significance import (
    Family,
    PairedTest,
    best_of,
    bonferroni,
    crossed_test,
    paired_test,
)

RNG = np.random.default_rng(7)
BASE = RNG.normal(50, 20, 50)
NORMAL = BASE - RNG.normal(2, 5, 50)
SKEWED = BASE - RNG.exponential(5, 50) ** 2 + 10


def test_the_levels_are_the_papers():
    assert bonferroni(8) == 0.00625
    assert bonferroni(4) == 0.0125


def test_normal_differences_are_left_to_the_t_test():
    test = paired_test(BASE, NORMAL, 0.0125)
    expected = stats.ttest_rel(BASE, NORMAL)
    assert test.kind == "t"
    assert test.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert test.normality == pytest.approx(stats.shapiro(BASE - NORMAL).pvalue)
    assert (test.favours, test.seeds) == (1, 50)


def test_other_differences_are_left_to_wilcoxons_test():
    assert stats.shapiro(BASE - SKEWED).pvalue < 0.0125
    test = paired_test(BASE, SKEWED, 0.0125)
    assert test.kind == "wilcoxon"
    expected: Any = stats.wilcoxon(BASE, SKEWED)
    assert test.p == pytest.approx(expected.pvalue, rel=1e-9)


def test_the_level_decides_what_counts_as_normal():
    differences = np.asarray([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 2.0])
    normality = float(stats.shapiro(differences).pvalue)
    zeros = np.zeros(7)
    assert paired_test(differences, zeros, normality * 1.01).kind == "wilcoxon"
    assert paired_test(differences, zeros, normality * 0.99).kind == "t"


def test_three_differences_by_hand():
    """1, 2, 3: mean 2, deviation 1, t = 2√3 with two degrees of freedom, for which
    P(|T| > t) = 1 - t / √(2 + t²) = 1 - √(12 / 14)."""
    test = paired_test(np.asarray([1.0, 2.0, 3.0]), np.zeros(3), 0.05)
    assert test.kind == "t"
    assert test.p == pytest.approx(1 - np.sqrt(12 / 14))


def test_constant_differences_by_hand():
    """A point is not normal. Six equal gains: one sign pattern of 64 on each side."""
    test = paired_test(np.full(6, 3.0), np.ones(6), 0.05)
    assert test == PairedTest("wilcoxon", 2 / 64, None, 1, 6)
    assert paired_test(np.ones(6), np.full(6, 3.0), 0.05).favours == -1
    certain = paired_test(np.full(50, 8.0), np.full(50, -8.0), 0.00625)
    assert certain.p < 1e-9


def test_what_is_equal_is_not_significant():
    equal = PairedTest("equal", 1.0, None, 0, 50)
    assert paired_test(BASE, BASE, 0.05) == equal
    assert paired_test(BASE, BASE * (1 + 1e-12), 0.05) == equal
    zeros = np.zeros(50)
    assert paired_test(zeros, zeros, 0.05) == equal


@pytest.mark.parametrize(("seeds", "p"), [(1, 1.0), (2, 0.5)])
def test_too_few_seeds_prove_nothing(seeds, p):
    gains = np.arange(seeds) + 1.0
    test = paired_test(gains, np.zeros(seeds), 0.05)
    assert test == PairedTest("wilcoxon", p, None, 1, seeds)


def test_rounding_does_not_decide():
    """Differences that are one constant, but for the last digits of their numbers."""
    numbers = RNG.uniform(0, 100, 50)
    rounded = paired_test(numbers + 0.1, numbers, 0.0125)
    exact = paired_test(np.full(50, 0.1), np.zeros(50), 0.0125)
    assert rounded == exact


def test_very_many_seeds_are_left_to_the_t_test():
    gains = RNG.exponential(1, 6000)
    test = paired_test(gains, np.ones(6000), 0.05)
    assert (test.kind, test.normality) == ("t", None)
    expected: Any = stats.ttest_1samp(gains, 1.0)
    assert test.p == pytest.approx(expected.pvalue)


def test_the_best_must_beat_every_other():
    family = best_of({"a": BASE, "b": BASE - 10, "c": NORMAL}, higher_is_better=True)
    assert family.best == "a"
    assert family.level == pytest.approx(0.05 / 3)
    assert set(family.tests) == {"b", "c"}
    assert family.significant == (family.tests["c"].p < family.level)
    twins = best_of({"a": BASE, "b": BASE - 10, "c": BASE}, higher_is_better=True)
    assert not twins.significant


def test_lower_may_be_better():
    models = {"a": BASE, "b": BASE - 10}
    family = best_of(models, higher_is_better=False)
    assert family.best == "b"
    assert family.significant
    assert family.tests["a"].favours == 1
    assert best_of(models, higher_is_better=True).best == "a"


def test_alone_nobody_is_best():
    assert best_of({"a": BASE}, higher_is_better=True) == Family("a", 0.05, {})
    assert not best_of({"a": BASE}, higher_is_better=True).significant


def test_a_test_that_favours_the_other_is_no_win():
    """Six huge gains lift the mean; 44 small losses decide the signed ranks."""
    steps = np.linspace(0.9, 1.1, 44)
    differences = np.concatenate([-steps, np.full(6, 100.0)])
    family = best_of(
        {"lucky": differences, "steady": np.zeros(50)}, higher_is_better=True
    )
    test = family.tests["steady"]
    assert family.best == "lucky"
    assert test.kind == "wilcoxon"
    assert test.p < family.level
    assert test.favours == -1
    assert not family.significant


NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda x: round(x, 3))


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=30))
def test_any_data_have_an_answer_and_order_does_not_matter(pairs):
    first, second = np.asarray(pairs).T
    there, back = (
        paired_test(first, second, 0.0125),
        paired_test(second, first, 0.0125),
    )
    assert 0 <= there.p <= 1
    assert there.kind == back.kind
    assert there.favours == -back.favours
    assert there.p == pytest.approx(back.p, rel=1e-6)


def test_one_lucky_training_of_five_is_no_method():
    """Though over the episodes of these five there is no doubt."""
    policy = np.random.default_rng(0).normal(50, 10, 400)
    trainings = np.stack([policy] * 4 + [policy + 8])
    assert paired_test(trainings.mean(axis=0), policy, 0.01).p < 1e-30
    test = crossed_test(trainings, policy[None])
    assert test.difference == pytest.approx(1.6)
    # The seeds do not matter here, so it is the t-test of 0, 0, 0, 0 and 8.
    expected: Any = stats.ttest_1samp([0, 0, 0, 0, 8.0], 0)
    assert test.p == pytest.approx(expected.pvalue)


def test_a_crossed_test_holds_its_level():
    """Trainings and seeds both vary, and there is nothing to be found."""
    rng = np.random.default_rng(1)
    found = 0
    for _ in range(400):
        luck, seeds = rng.normal(size=(5, 1)), 5 * rng.normal(size=40)
        trainings = luck + seeds + rng.normal(size=(5, 40))
        found += crossed_test(trainings, rng.normal(size=(1, 40))).p < 0.05
    assert found <= 32  # 20 are expected at the level


def test_two_methods_are_tested_over_the_trainings_of_both():
    """Welch's test where seeds do not matter, and its level where they do."""
    rng = np.random.default_rng(2)
    means = rng.normal(size=5), rng.normal(1, 3, size=4)
    expected: Any = stats.ttest_ind(*means, equal_var=False)
    seeds = rng.normal(size=40)
    test = crossed_test(*(mean[:, None] + seeds[None] for mean in means))
    assert test.p == pytest.approx(expected.pvalue)
    assert test.difference == pytest.approx(means[0].mean() - means[1].mean())

    def method() -> np.ndarray:
        return rng.normal(size=(5, 1)) + rng.normal(size=40) + rng.normal(size=(5, 40))

    found = sum(crossed_test(method(), method()).p < 0.05 for _ in range(400))
    assert found <= 32


def test_crossed_tests_where_nothing_varies():
    same = np.full((3, 6), 4.0)
    assert crossed_test(same, same[:1]).p == 1
    always = crossed_test(same, -same)
    assert (always.difference, always.error, always.p) == (8, 0, 0)
