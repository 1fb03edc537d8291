"""The searches that were done: what is said of them is what they found."""

import csv
import re

import pytest

from plato.configuration import read_toml
from plato.learners.config import METHODS, MethodName, TrainConfig
from plato.tuning.spaces import SPACES, configuration, defaults
from said import RESULTS, prose, text, trainings

SEARCHES = RESULTS / "searches"


def lines(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader((SEARCHES / name).read_text("utf-8").splitlines()))


def trials(method: MethodName) -> list[dict[str, str]]:
    return lines(f"{method}/trials.csv")


@pytest.mark.parametrize("method", METHODS)
def test_the_best_settings_are_those_of_the_best_trial(method):
    done = trials(method)
    assert len(done) == 50
    best = max((one for one in done if one["score"]), key=lambda t: float(t["score"]))
    found = {name: float(best[name]) for name in SPACES[method]}
    kept = TrainConfig.from_mapping(read_toml(SEARCHES / method / "best.toml"))
    budget = {"steps": 200_000, "seed": 42}
    expected = configuration(defaults(method), kept.setups[0], found, **budget)
    assert kept.networks == expected.networks
    for name, value in vars(expected.learning).items():
        assert getattr(kept.learning, name) == pytest.approx(value), name


def test_what_the_page_says_they_found():
    (table,) = re.findall(
        r"^\| \| best of 50 trials .*\n\|-.*\n((?:\|.*\n)+)",
        text("docs/training.md"),
        re.MULTILINE,
    )
    of_return = [one for one in lines("trained.csv") if one["metric"] == "return"]
    trained = {line["contestant"]: float(line["mean"]) for line in of_return}
    said = [
        [cell.strip() for cell in line[1:-1].split("|")] for line in table.splitlines()
    ]
    assert [row.lower() for row, *_ in said] == list(METHODS)
    for (row, *numbers), method in zip(said, METHODS, strict=True):
        scores = [float(one["score"]) for one in trials(method) if one["score"]]
        default = trainings(row, "3x3-S3").mean()
        found = (max(scores), trained[row], default)
        assert numbers == [f"{number:.1f}" for number in found]
    each = r"(\S+) for PLATO, (\S+) for DICG, (\S+) for DGN and (\S+) for MOHITO"
    found = re.search(f"is worth {each}", prose("results.md"))
    assert found
    assert found.groups() == tuple(f"{trained[row]:.1f}" for row, *_ in said)
    searched = (
        r"found it earns (\S+) there after 1.2 million steps, in place of (\S+)\. "
    )
    found = re.search(searched, prose("baselines.md"))
    assert found
    assert found.groups() == tuple(said[-1][2:])
