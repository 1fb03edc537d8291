"""Comparisons: what is bold, what is aggregated, and what cannot be compared."""

import numpy as np
import pytest

from plato.domains.setups import load_setup
from plato.errors import PlatoError
from plato.evaluation.aggregates import Scale
from plato.evaluation.comparison import check_metrics, compare
from plato.evaluation.contestants import Contestant
from plato.evaluation.evaluate import evaluate
from plato.evaluation.metrics import METRICS
from plato.evaluation.protocols import Examiner, protocol
from plato.evaluation.significance import best_of
from plato.runs.trainings import contestants_of

S2, S3 = load_setup("wildfire-2x3-S2"), load_setup("wildfire-2x3-S3")


def rules(*names: str) -> list[Contestant]:
    return [Contestant(name, policy=name) for name in names]


def test_the_papers_numbers_and_tests():
    found = compare(
        rules("noop", "random", "weakest"), [S3], Examiner(protocol("paper"))
    )
    played = {
        name: evaluate(name, S3, noise="paper").metrics
        for name in ("noop", "random", "weakest")
    }
    cell = found.cells["random", "wildfire-2x3-S3", "return"]
    assert cell.mean == pytest.approx(played["random"]["return"].mean())
    assert cell.std == pytest.approx(played["random"]["return"].std(ddof=1))
    assert cell.interval is None
    for metric, about in METRICS.items():
        if about.higher_is_better is None:
            assert ("wildfire-2x3-S3", metric) not in found.families
            continue
        expected = best_of(
            {name: metrics[metric] for name, metrics in played.items()},
            higher_is_better=about.higher_is_better,
        )
        assert found.families["wildfire-2x3-S3", metric] == expected
        bold = {n for n in played if found.cells[n, "wildfire-2x3-S3", metric].bold}
        assert bold == ({expected.best} if expected.significant else set())
    assert found.cells["weakest", "wildfire-2x3-S3", "return"].bold
    # Nothing is good or bad about how many fires there are.
    assert not any(found.cells[n, "wildfire-2x3-S3", "new_fires"].bold for n in played)
    assert found.summaries == {}


def test_the_fields_numbers_and_aggregates(additive):
    contestants = contestants_of([str(additive)]) + rules("noop", "weakest")
    examiner = Examiner(protocol("field", episodes=20))
    found = compare(contestants, [S3], examiner, metrics=["return", "burnouts"])
    scores = found.results["additive", "wildfire-2x3-S3"].by_training("return")
    cell = found.cells["additive", "wildfire-2x3-S3", "return"]
    assert cell.interval is not None
    assert cell.mean == pytest.approx(scores.mean())
    # Two trainings: the interval goes from one to the other.
    assert (cell.interval.low, cell.interval.high) == pytest.approx(
        (scores.min(), scores.max())
    )
    assert found.trainings("additive") == (2, 2)
    assert found.trainings("noop") == (0, 0)
    summary = found.summaries["return"]
    assert summary.scales["wildfire-2x3-S3"].low == -6.0
    assert summary.aggregates["noop"]["mean"].value == 0.0
    assert summary.improvement["weakest", "noop"].value == 1.0
    assert summary.improvement["noop", "weakest"].value == 0.0
    assert summary.profiles["noop"].value.max() == 0.0
    # Fewer burnouts are better: who never fights is the worst.
    assert found.summaries["burnouts"].aggregates["noop"]["mean"].value == 0.0
    assert found.families == {}


def test_bold_in_the_field_beats_all_others():
    examiner = Examiner(protocol("field"))
    found = compare(rules("noop", "random", "weakest"), [S2], examiner)
    best = {
        metric: {n for n in found.contestants if found.cells[n, S2.name, metric].bold}
        for metric in METRICS
    }
    assert best["return"] == {"weakest"}
    assert best["burnouts"] == {"weakest"}
    assert best["new_fires"] == set()


def test_shares_of_the_optimum():
    examiner = Examiner(protocol("field", episodes=10))
    found = compare(
        rules("weakest"), [S2, S3], examiner, optimum={S2.name: 100.0, S3.name: 50.0}
    )
    summary = found.summaries["return"]
    assert summary.scales == {S2.name: Scale(0.0, 100.0), S3.name: Scale(0.0, 50.0)}
    means = [
        found.cells["weakest", S2.name, "return"].mean / 100,
        found.cells["weakest", S3.name, "return"].mean / 50,
    ]
    assert summary.aggregates["weakest"]["mean"].value == pytest.approx(np.mean(means))
    assert "burnouts" not in found.summaries  # alone, there is nothing to measure by


@pytest.mark.parametrize(
    ("optimum", "words"),
    [
        ({"wildfire-3x3-S3": 5.0}, "which is not compared here"),
        ({"wildfire-2x3-S3": 0.0}, "need it positive"),
        ({"wildfire-2x3-S3": float("nan")}, "need it positive"),
    ],
)
def test_a_wrong_optimum_is_refused(optimum, words):
    with pytest.raises(PlatoError, match=words):
        compare(rules("noop"), [S3], Examiner(protocol("field")), optimum=optimum)


def test_metrics_are_checked():
    assert check_metrics([]) == tuple(METRICS)
    assert check_metrics(["putouts", "return", "putouts"]) == ("putouts", "return")
    with pytest.raises(PlatoError, match="no metric 'score'; choose from: return, "):
        check_metrics(["score"])


def test_rows_have_different_names():
    with pytest.raises(PlatoError, match="Two rows are called 'noop'"):
        compare(rules("noop", "noop"), [S3], Examiner(protocol("paper")))
