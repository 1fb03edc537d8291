"""The search: the paper's spaces, trials side by side, and studies that go on."""

import csv
import io
import math
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

from plato.cli import live, tuning
from plato.configuration import read_toml
from plato.domains.setups import load_setup, write_setup
from plato.errors import PlatoError
from plato.learners import kinds
from plato.learners.baseline_configs import DicgLearning
from plato.learners.config import METHODS, RunName, TrainConfig
from plato.learners.program import Group
from plato.policies.baseline_configs import DicgConfig
from plato.policies.padded import PaddedShape
from plato.policies.rules import RulePolicy, noop
from plato.tuning import study, trials
from plato.tuning.spaces import SPACES, Choice, Range, configuration, defaults
from plato.tuning.study import Plan, Standing, search
from plato.tuning.trials import Ears, Training, scores, shape

SETUP = "wildfire-2x3-S3"
BUDGET: dict[str, Any] = {"steps": 6 * 100 * 2, "seed": 3, "validation": 4}


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
        config = configuration(defaults(method), SETUP, found, steps=200_000, seed=1)
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
        configuration(defaults(method), SETUP, middle(method), steps=10, seed=1)


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


@pytest.fixture
def at_once(monkeypatch):
    """As on a device that does trials of one shape side by side."""
    monkeypatch.setattr(trials, "side_by_side", lambda: True)


@pytest.mark.parametrize("together", [True, False])
def test_trials_are_trained_and_scored(monkeypatch, together):
    monkeypatch.setattr(trials, "REPORT_SECONDS", 0.0)
    monkeypatch.setattr(trials, "side_by_side", lambda: together)
    kinds._programs.cache_clear()
    trial = middle("dicg") | {"hidden": 64, "batch": 512, "rate": 1e-3}
    broken = trial | {"rate": 1e38}
    heard = []
    found = dict(
        scores(
            defaults("dicg"),
            load_setup(SETUP),
            [trial, broken],
            **BUDGET,
            ears=Ears(lambda places, share: heard.append((places, share))),
        )
    )
    assert found.keys() == {0, 1}
    assert math.isfinite(found[0])
    assert math.isnan(found[1])
    places = [[0, 1]] if together else [[0], [1]]
    for own in places:
        shares = [share for place, share in heard if place == own]
        assert shares == [0.0, 0.5, 1.0]
    assert len(heard) == 3 * len(places)
    # One after the other, or at once: by one program.
    assert kinds._programs.cache_info().misses == 1


@pytest.mark.parametrize("threads", [None, 1])
def test_a_cpu_does_trials_one_by_one(monkeypatch, memory, threads):
    pools = []

    def pool(size: int) -> ThreadPoolExecutor:
        pools.append(size)
        return ThreadPoolExecutor(size)

    monkeypatch.setattr(trials, "side_by_side", lambda: False)
    monkeypatch.setattr(trials, "cores", lambda: 3)
    monkeypatch.setattr(trials, "ThreadPoolExecutor", pool)
    tried, _ = memory(5)
    assert tell([], 3, trainings=2, threads=threads) == {i: i for i in range(3)}
    assert sorted(tried) == [[0], [0], [1], [1], [2], [2]]
    assert pools == [threads or 3]


def test_threads_that_ask_at_once_are_given_the_same_programs(monkeypatch):
    """Also if one asks while the other's are being made."""
    asked = []

    @lru_cache
    def slow(kind):
        asked.append(kind)
        time.sleep(0.2)
        return object(), None, None

    monkeypatch.setattr(kinds, "_programs", slow)
    form = PaddedShape(2, 4, 4, 1, 3)
    kind = kinds.Kind(DicgConfig(), DicgLearning(), form, setups=1, mapped=False)
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(kinds.compiled, [kind, kind])
    assert one is other
    assert asked == [kind]


@pytest.mark.usefixtures("at_once")
def test_a_trial_may_have_several_trainings(monkeypatch):
    """Each trial's are those of its settings with one seed after the other."""
    setup, rates, scored = load_setup(SETUP), (1e-4, 1e-2), []

    def worth(policy, *_) -> float:
        scored.append(policy)
        return 10.0 ** len(scored)

    monkeypatch.setattr(trials, "_score", worth)
    found = [middle("dicg") | {"rate": rate} for rate in rates]
    assert dict(scores(defaults("dicg"), setup, found, **BUDGET, trainings=2)) == {
        0: (10 + 100) / 2,
        1: (1000 + 10_000) / 2,
    }
    budget = {name: BUDGET[name] for name in ("steps", "seed")}
    for place, one in enumerate(found):
        config = configuration(defaults("dicg"), SETUP, one, **budget, trainings=2)
        assert [run.seed for run in config.runs] == [3, 4]
        alone = Group(config, {SETUP: setup}, config.runs)
        learner = alone.start()
        for update in (1, 2):
            learner, _ = alone.advance(learner, update)
        own = scored[2 * place : 2 * place + 2]
        for policy, expected in zip(own, alone.policies(learner), strict=True):
            leaves = zip(*map(jax.tree.leaves, (policy, expected)), strict=True)
            for a, b in leaves:
                np.testing.assert_allclose(a, b, atol=1e-4)


@pytest.fixture
def memory(monkeypatch):
    """A device that holds so many trainings in one program; what is tried, and said.

    Policies are worth the place of their trials.
    """
    tried, said, made = [], [], []

    def worth(policy, *_) -> float:
        return next(float(place) for one, place in made if one is policy)

    def of(size: int, beside_others: bool = True):
        def train(self, members):
            tried.append([one.trial for one in members])
            alone = threading.current_thread() is threading.main_thread()
            if len(members) > size or not (alone or beside_others):
                raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory")
            own = [(RulePolicy(noop), one.trial) for one in members]
            made.extend(own)
            return [policy for policy, _ in own]

        monkeypatch.setattr(trials._Programs, "train", train)
        monkeypatch.setattr(trials, "_score", worth)
        return tried, said

    return of


def tell(
    said: list[str], many: int, trainings: int = 1, threads: int | None = None
) -> dict[int, float]:
    found = scores(
        defaults("dicg"),
        load_setup(SETUP),
        [middle("dicg")] * many,
        **BUDGET,
        trainings=trainings,
        threads=threads,
        ears=Ears(says=said.append),
    )
    return dict(found)


@pytest.mark.usefixtures("at_once")
def test_trials_that_do_not_fit_are_split_as_cells_are(memory):
    tried, said = memory(2)
    assert tell(said, 5) == {i: i for i in range(5)}
    assert tried == [[0, 1, 2, 3, 4], [0, 1], [2, 3, 4], [2], [3, 4]]
    assert len(said) == 2
    assert said[0].startswith("5 trainings do not fit into this device's memory; they")


@pytest.mark.usefixtures("at_once")
def test_a_trial_of_several_trainings_is_split_as_well(memory):
    tried, said = memory(2)
    assert tell(said, 2, trainings=3) == {0: 0.0, 1: 1.0}
    assert tried == [[0, 0, 0, 1, 1, 1], [0, 0, 0], [0], [0, 0], [1, 1, 1], [1], [1, 1]]
    assert said[0].startswith("6 trainings do not fit into this device's memory; they")


@pytest.mark.usefixtures("at_once")
def test_a_trial_may_need_the_device_for_itself(memory):
    """What else runs is in its way, and then no more."""
    tried, said = memory(1, beside_others=False)
    assert tell(said, 1) == {0: 0.0}
    assert tried == [[0], [0]]
    assert not said


@pytest.mark.usefixtures("at_once")
def test_a_trial_that_fits_nowhere_has_no_score(memory):
    tried, said = memory(0)
    found = tell(said, 2)
    assert all(map(math.isnan, found.values()))
    assert len(tried) == 3
    assert "hidden 64, batch 512" in said[1]
    assert "does not fit into this device's memory" in said[1]


def test_who_stops_does_not_wait_for_trials_that_run(monkeypatch):
    """One of two trials of different shapes never ends."""
    released = threading.Event()

    def train(self, members):
        if members[0].trial == 1:
            released.wait()
        return [RulePolicy(noop) for _ in members]

    monkeypatch.setattr(trials._Programs, "train", train)
    monkeypatch.setattr(trials, "_score", lambda *_: 1.0)
    wider = middle("dicg") | {"hidden": 256}
    two = [middle("dicg"), wider]
    answers: Any = scores(defaults("dicg"), load_setup(SETUP), two, **BUDGET)
    assert next(answers) == (0, 1.0)
    leaving = threading.Thread(target=answers.close, daemon=True)
    leaving.start()
    leaving.join(60)
    left = not leaving.is_alive()
    released.set()
    assert left


def test_other_errors_of_trials_are_not_a_lack_of_memory(monkeypatch):
    def broken(self, members):
        raise jax.errors.JaxRuntimeError("INTERNAL: something else")

    monkeypatch.setattr(trials._Programs, "train", broken)
    with pytest.raises(jax.errors.JaxRuntimeError, match="something else"):
        tell([], 2)


@pytest.mark.parametrize("method", SPACES)
def test_trials_that_differ_in_numbers_alone_share_a_program(method):
    one, space, base = middle(method), SPACES[method], defaults(method)
    highest = {k: of.high for k, of in space.items() if isinstance(of, Range)}
    numbers, other = list(highest), one | highest
    widths: Any = space["hidden"]
    wider = one | {"hidden": widths.sizes[1]}
    one, other, wider = (
        shape(configuration(base, SETUP, found, steps=10**5, seed=1), base, numbers)
        for found in (one, other, wider)
    )
    assert one == other
    assert one != wider


def test_how_far_a_trial_of_several_trainings_is():
    heard = []
    ears = Ears(lambda places, share: heard.append((places, share)))
    told = trials._Told([2, 2, 1], ears)
    runs = [RunName((SETUP,), seed) for seed in (1, 2)]
    told.trains([Training(0, runs[0]), Training(1, runs[0])], 0.5)
    told.trains([Training(0, runs[1]), Training(2, runs[0])], 1.0)
    assert heard == [([0, 1], 0.25), ([0], 0.75), ([2], 1.0)]


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

    def score(base, setup, found, **budget):
        assert (budget["steps"], budget["validation"]) == (2000 * 100, 15)
        trials.extend(found)
        budget["ears"].trains(range(len(found)), 0.25)
        for place, one in reversed(list(enumerate(found))):  # as they come
            yield place, -abs(math.log10(one["rate"]) + 4)

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
    # For a training like any other, not for a trial.
    assert (config.seeds, config.checkpoints) == (1, TrainConfig.checkpoints)
    lines = (tmp_path / "trials.csv").read_text().splitlines()
    rows = list(csv.DictReader(lines))
    assert [float(row["rate"]) for row in rows] == [one["rate"] for one in asked]
    for one in asked:
        assert 1e-5 <= one["rate"] <= 1e-2
        assert one["hidden"] in (64, 128, 256)


def test_a_search_goes_on_with_what_it_was_begun_with(tmp_path, monkeypatch):
    """Whatever the defaults are by then."""
    bases = []

    def score(base, setup, found, **budget):
        bases.append(base)
        return [(place, 1.0) for place in range(len(found))]

    monkeypatch.setattr(study, "scores", score)
    search(Plan(method="mohito"), tmp_path, 1)
    first = defaults("mohito")
    learning: Any = first.learning
    changed = replace(learning, gradients=learning.gradients + 1)
    monkeypatch.setattr(study, "defaults", lambda _: replace(first, learning=changed))
    search(Plan(method="mohito"), tmp_path, 2)
    search(Plan(method="mohito"), tmp_path / "new", 1)
    assert [base.learning for base in bases] == [learning, learning, changed]
    for folder, own in (tmp_path, learning), (tmp_path / "new", changed):
        best: Any = TrainConfig.from_mapping(read_toml(folder / "best.toml"))
        assert best.learning.gradients == own.gradients


def test_a_search_that_is_there_is_checked_by_what_it_was_begun_with(
    asked, tmp_path, monkeypatch
):
    search(Plan(method="dicg"), tmp_path, 1)
    first = defaults("dicg")
    learning: Any = first.learning
    longer = replace(first, learning=replace(learning, steps=10**6))
    monkeypatch.setattr(study, "defaults", lambda _: longer)
    assert search(Plan(method="dicg"), tmp_path, 2).done == len(asked) == 2
    with pytest.raises(PlatoError, match="are less than one update of dicg"):
        search(Plan(method="dicg"), tmp_path / "new", 2)
    assert not (tmp_path / "new").exists()


def test_settings_that_are_known_no_more_are_refused(asked, tmp_path, monkeypatch):
    base = TrainConfig.to_mapping

    def older(config):
        found = base(config)
        return found | {"learning": found["learning"] | {"gone": 1}}

    monkeypatch.setattr(TrainConfig, "to_mapping", older)
    with pytest.raises(PlatoError, match=r"learning\.gone.*choose another --out"):
        search(Plan(method="dicg"), tmp_path, 1)
    assert not asked


def test_trials_that_were_killed_are_run_again(asked, tmp_path, monkeypatch):
    plan = Plan(method="dicg")

    class Killed(BaseException):
        pass

    def die(base, setup, found, **budget):
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


def test_trials_that_are_done_stay_done_when_others_fail(asked, tmp_path):
    """A batch of three, of which the cluster does one."""
    plan, lost = Plan(method="dicg"), []

    def fail(base, setup, found, **budget):
        lost.extend(found[:1] + found[2:])
        yield 1, -7.0
        raise PlatoError("2 of 3 trials could not be done")

    with pytest.raises(PlatoError, match="2 of 3"):
        search(plan, tmp_path, 3, together=3, run=fail)
    assert "-7.0" in (tmp_path / "trials.csv").read_text()
    assert (tmp_path / "best.toml").exists()
    assert search(plan, tmp_path, 3, together=3).done == 3
    assert asked == lost


def test_a_search_says_what_runs_and_how_far_it_is(asked, tmp_path):
    heard = []
    search(Plan(method="dicg"), tmp_path, 3, together=2, report=heard.append)
    assert [(s.done, s.running, s.share, len(s.last)) for s in heard] == [
        (0, (), 0.0, 0),
        (0, (0, 1), 0.25, 0),
        (1, (0,), 0.25, 1),
        (2, (), 0.0, 1),
        (2, (2,), 0.25, 0),
        (3, (), 0.0, 1),
    ]
    assert heard[4].best == max(s.last[0] for s in heard[:4] if s.last)


def test_what_a_search_shows(monkeypatch):
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    out = Console(file=(written := io.StringIO()), width=120)
    lines = live.Lines(10)
    shown = tuning.Shown(out, lines)
    shown.report(Standing(4, math.nan, {}, []))
    assert (lines.done, lines.pace, lines.news) == (4, "ETA –", "best –")
    now = 110.0
    shown.report(Standing(4, math.nan, {}, [], (4, 5, 6, 7), 0.5))
    # Half of four took 10 s: four are left of ten, beside what was there before.
    assert (lines.pace, lines.news) == ("ETA 0:00:20", "best –  trial(s) 4–7: 50 %")
    now = 130.0
    shown.report(Standing(5, 8.25, {"rate": 1.0}, [8.25], (4, 6), 0.5))
    assert (lines.pace, lines.news) == ("ETA 0:01:00", "best 8.2  trial(s) 4, 6: 50 %")
    shown.report(Standing(10, 8.25, {"rate": 1.0}, [1.0]))
    assert (lines.done, lines.pace, lines.news) == (10, "ETA 0:00:00", "best 8.2")
    assert written.getvalue() == (
        "5/10  best 8.2  just now 8.2\n10/10  best 8.2  just now 1.0\n"
    )


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"address": "auto"}, "--address is of a Ray cluster; add --engine ray"),
        ({"gpus": 0.5}, "--gpus is for the trials of a cluster; add --engine ray"),
        ({"gpus": -1.0, "engine": "ray"}, "--gpus must be 0 or more, not -1"),
    ],
)
def test_what_tune_refuses(asked, words):
    with pytest.raises(PlatoError, match=words):
        tuning.Tune(**asked).run()


def test_trials_that_break_down_count_and_are_not_the_best(tmp_path, monkeypatch):
    answers = iter([math.nan, -2.0, 0.0, -1.0])
    monkeypatch.setattr(study, "scores", lambda *a, **k: [(0, next(answers))])
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


def test_a_search_of_an_older_version_goes_on(asked, tmp_path, monkeypatch):
    """It noted no number of trainings: there was one."""
    plan = Plan(method="dicg")

    def noted(plan) -> dict[str, Any]:
        return {k: v for k, v in vars(plan).items() if k != "trainings"}

    with monkeypatch.context() as patch:
        patch.setattr(study, "asdict", noted)
        search(plan, tmp_path, 1)
    assert '"trainings"' not in (tmp_path / "study.journal").read_text()
    assert search(plan, tmp_path, 2).done == 2
    with pytest.raises(PlatoError, match="a search with other settings"):
        search(replace(plan, trainings=2), tmp_path, 3)


def test_what_cannot_be_searched_is_refused(asked, tmp_path, monkeypatch):
    search(Plan(method="dicg"), tmp_path, 1)
    with pytest.raises(PlatoError, match="a search with other settings"):
        search(Plan(method="dicg", episodes=100), tmp_path, 1)
    with pytest.raises(PlatoError, match="validation must be from 1"):
        Plan(method="dicg", validation=0)
    with pytest.raises(PlatoError, match="trainings must be from 1"):
        Plan(method="dicg", trainings=0)
    with pytest.raises(PlatoError, match="no setup"):
        search(Plan(method="dicg", setup="nowhere"), tmp_path / "b", 1)
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(PlatoError, match=r"plato-marl\[tune\]"):
        search(Plan(method="dicg"), tmp_path / "c", 1)
