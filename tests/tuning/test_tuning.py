"""The search: the paper's spaces, trials side by side, and studies that go on."""

import csv
import math
import sys
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plato.configuration import read_toml
from plato.domains.setups import load_setup, write_setup
from plato.errors import PlatoError
from plato.learners.baseline_configs import DicgLearning
from plato.learners.config import METHODS, TrainConfig
from plato.learners.program import Group
from plato.policies.baseline_configs import DicgConfig
from plato.tuning import study
from plato.tuning.spaces import SPACES, Choice, Range, configuration
from plato.tuning.study import Plan, search
from plato.tuning.trials import scores, shape

SETUP = "wildfire-2x3-S3"


def middle(method) -> dict[str, float]:
    """A trial from the middle of a method's space."""
    return {
        name: of.sizes[0] if isinstance(of, Choice) else (of.low * of.high) ** 0.5
        for name, of in SPACES[method].items()
    }


def test_the_spaces_are_the_papers():
    widths, sizes = (
        {m: SPACES[m][name] for m in SPACES} for name in ("hidden", "batch")
    )
    assert widths["plato"] == widths["dgn"] == widths["dicg"] == Choice((64, 128, 256))
    assert widths["mohito"] == Choice((32, 64, 128))
    assert sizes["plato"] == Choice((512, 1024, 2048, 4096))
    assert sizes["dicg"] == Choice((512, 1024, 2048))
    assert SPACES["plato"]["actor_rate"] == Range(1e-5, 1e-2, log=True)
    assert SPACES["dgn"]["rate"] == Range(1e-4, 1e-2, log=True)
    assert SPACES["mohito"]["critic_rate"] == Range(1e-5, 1e-3, log=True)
    for method, space in SPACES.items():
        halves = METHODS[method]
        for name, of in space.items():
            # The default of what is searched lies within what is searched.
            if isinstance(of, Range):
                assert of.low <= getattr(halves.learning(), name) <= of.high


@pytest.mark.parametrize("method", SPACES)
def test_every_trial_has_the_same_budget(method):
    batches = SPACES[method]["batch"]
    assert isinstance(batches, Choice)
    for batch in batches.sizes:
        found = middle(method) | {"batch": batch}
        config = configuration(method, SETUP, found, steps=200_000, seed=1)
        learning: Any = config.learning
        a_round = learning.games * learning.steps
        assert 200_000 - a_round < learning.updates * a_round <= 200_000
        if method == "plato":
            assert a_round == batch
        elif method == "dicg":
            assert batch <= a_round <= batch + 200
        else:
            assert learning.batch == batch
    with pytest.raises(PlatoError, match="ask for more episodes"):
        configuration(method, SETUP, middle(method), steps=10, seed=1)


def test_settings_as_data_are_the_settings():
    """Two learning rates in one program: each learns as it would with its own."""
    config = TrainConfig(
        setups=(SETUP,),
        networks=DicgConfig(hidden=8, policy=(8,), critic_hidden=8),
        learning=DicgLearning(games=3, steps=10, updates=2, epochs=1),
    )
    setups, rates = {SETUP: load_setup(SETUP)}, [1e-3, 1e-2]
    both = Group(config, setups, config.runs * 2, {"rate": jnp.asarray(rates)})
    learner, _ = both.advance(both.start(), 1)
    together = both.policies(learner)
    for rate, found in zip(rates, together, strict=True):
        own = replace(config, learning=replace(config.learning, rate=rate))
        alone = Group(own, setups, config.runs)
        learner, _ = alone.advance(alone.start(), 1)
        (expected,) = alone.policies(learner)
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5)


def test_trials_are_trained_and_scored():
    trial = middle("dicg") | {"hidden": 64, "batch": 512, "rate": 1e-3}
    broken = trial | {"rate": 1e38}
    found = scores(
        "dicg",
        load_setup(SETUP),
        [trial, broken],
        steps=6 * 100 * 2,
        seed=3,
        validation=4,
    )
    assert math.isfinite(found[0])
    assert math.isnan(found[1])


@pytest.mark.parametrize("method", SPACES)
def test_trials_that_differ_in_numbers_alone_share_a_program(method):
    one, space = middle(method), SPACES[method]
    highest = {k: of.high for k, of in space.items() if isinstance(of, Range)}
    numbers, other = list(highest), one | highest
    widths: Any = space["hidden"]
    wider = one | {"hidden": widths.sizes[1]}
    one, other, wider = (
        shape(configuration(method, SETUP, found, steps=10**5, seed=1), numbers)
        for found in (one, other, wider)
    )
    assert one == other
    assert one != wider


def test_a_search_that_cannot_be_done_leaves_nothing(tmp_path):
    with pytest.raises(PlatoError, match="warm_up=10000 steps are more than"):
        search(Plan(method="dgn", episodes=30), tmp_path / "dgn", 4)
    assert not (tmp_path / "dgn").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(PlatoError, match="cannot be written"):
        search(Plan(method="dicg"), tmp_path / "file", 4)


@pytest.fixture
def asked(monkeypatch):
    """Studies alone: what is asked, with a score that is best for small rates."""
    trials: list[dict[str, float]] = []

    def score(method, setup, found, **budget):
        assert (budget["steps"], budget["validation"]) == (2000 * 100, 15)
        trials.extend(found)
        return [-abs(math.log10(one["rate"]) + 4) for one in found]

    monkeypatch.setattr(study, "scores", score)
    return trials


def test_a_search_goes_on_and_asks_nothing_twice(asked, tmp_path):
    plan = Plan(method="dicg")
    first = search(plan, tmp_path, 5, together=2)
    assert first.done == len(asked) == 5
    search(plan, tmp_path, 5)
    assert len(asked) == 5
    last = search(plan, tmp_path, 12, together=3)
    assert last.done == len(asked) == 12
    assert last.best == max(-abs(math.log10(one["rate"]) + 4) for one in asked)
    config = TrainConfig.from_mapping(read_toml(tmp_path / "best.toml"))
    learning: Any = config.learning
    assert config.method == "dicg"
    assert learning.rate == pytest.approx(last.found["rate"])
    lines = (tmp_path / "trials.csv").read_text().splitlines()
    rows = list(csv.DictReader(lines))
    assert [float(row["rate"]) for row in rows] == [one["rate"] for one in asked]
    for one in asked:
        assert 1e-5 <= one["rate"] <= 1e-2
        assert one["hidden"] in (64, 128, 256)


def test_trials_that_were_killed_are_run_again(asked, tmp_path, monkeypatch):
    plan = Plan(method="dicg")

    class Killed(BaseException):
        pass

    def die(method, setup, found, **budget):
        asked.extend(found)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(study, "scores", die)
        with pytest.raises(Killed):
            search(plan, tmp_path, 4, together=2)
    lost = list(asked)
    asked.clear()
    assert search(plan, tmp_path, 4, together=2).done == 4
    assert asked[:2] == lost
    assert len(asked) == 4


def test_trials_that_break_down_count_and_are_not_the_best(tmp_path, monkeypatch):
    answers = iter([math.nan, -2.0, 0.0, -1.0])
    monkeypatch.setattr(study, "scores", lambda *a, **k: [next(answers)])
    standing = search(Plan(method="dgn"), tmp_path, 4, together=1)
    assert standing.done == 4
    assert standing.best == 0.0


def test_a_search_does_not_go_on_with_another_game(asked, tmp_path):
    path, shipped = tmp_path / "town.toml", load_setup(SETUP).config
    write_setup(path, shipped)
    plan, folder = Plan(method="dicg", setup=str(path)), tmp_path / "study"
    search(plan, folder, 1)
    fire = replace(shipped.fire, intensity_increase_probability=0.5)
    write_setup(path, replace(shipped, fire=fire))
    with pytest.raises(PlatoError, match=r"town\.toml: is not the game that .*study"):
        search(plan, folder, 2)
    write_setup(path, replace(shipped, description="in other words"))
    assert search(plan, folder, 2).done == 2


def test_what_cannot_be_searched_is_refused(asked, tmp_path, monkeypatch):
    search(Plan(method="dicg"), tmp_path, 1)
    with pytest.raises(PlatoError, match="a search with other settings"):
        search(Plan(method="dicg", episodes=100), tmp_path, 1)
    with pytest.raises(PlatoError, match="validation must be from 1"):
        Plan(method="dicg", validation=0)
    with pytest.raises(PlatoError, match="no setup"):
        search(Plan(method="dicg", setup="nowhere"), tmp_path / "b", 1)
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(PlatoError, match=r"plato-marl\[tune\]"):
        search(Plan(method="dicg"), tmp_path / "c", 1)
