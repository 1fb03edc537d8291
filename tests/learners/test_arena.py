"""The games of trainings, and other maps now and then."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

import plato
from plato.domains.wildfire.maps import MOVED
from plato.errors import PlatoError
from plato.learners.arena import Arena
from plato.learners.baseline_configs import DgnLearning, DicgLearning, MohitoLearning
from plato.learners.config import MappoConfig, TrainConfig
from plato.learners.program import Program
from plato.policies.baseline_configs import DgnConfig, DicgConfig
from plato.policies.config import ActorConfig
from plato.policies.mohito_config import MohitoConfig

SETUPS = {
    name: plato.load_setup(name) for name in ("wildfire-2x3-S1", "wildfire-2x3-S3")
}
CONFIG = TrainConfig(
    setups=tuple(SETUPS),
    maps="scattered",
    new_maps=2,
    networks=ActorConfig(hidden=8, encoder="lstm"),
    learning=MappoConfig(games=8, steps=5, updates=6, epochs=1, minibatches=1),
)
AT_HOME = np.array([True, False, True, False] * 2)


def arena(config: TrainConfig = CONFIG) -> Arena:
    setups = list(SETUPS.values())
    rows = setups[0].rows._replace(tasks=4)
    return Arena(config, [setups], rows, [config.game_seed])


def cells(one: Arena) -> np.ndarray:
    """Of each game: where its tasks are."""
    games: Any = one.games
    return np.asarray(games.rules.cell)[0]


def test_maps_change_in_time_and_away_from_home_alone():
    one, seen, fresh = arena(), {}, []
    for update in range(1, 7):
        fresh.append(one.turn_to(update))
        seen[update] = cells(one)
    assert fresh == [False, False, True, False, True, False]
    for update in (1, 3, 5):
        np.testing.assert_array_equal(seen[update], seen[update + 1])
    for before, after in ((1, 3), (3, 5), (1, 5)):
        same = (seen[before] == seen[after]).all(axis=(1, 2))
        assert same[AT_HOME].all()
        assert not same[~AT_HOME].all()


def fires(one: Arena) -> np.ndarray:
    """Of each game: the sizes of its fires, 0 where there is none."""
    games: Any = one.games
    return np.sort(np.asarray(games.rules.size)[0], axis=1)


def test_on_strange_maps_all_that_are_away_from_home_are_scattered():
    kept = replace(CONFIG, maps="own", new_maps=0)
    own, usual, strange = map(
        arena, (kept, CONFIG, replace(CONFIG, maps="strange", new_maps=40))
    )
    for one in (usual, strange):
        np.testing.assert_array_equal(cells(one)[AT_HOME], cells(own)[AT_HOME])
    moved = np.array([False, True, False, False] * 2)
    np.testing.assert_array_equal(fires(usual)[moved], fires(own)[moved])
    assert (fires(strange)[moved] != fires(own)[moved]).any()


def test_maps_of_an_update_depend_on_nothing_before():
    """A training that is resumed, in the middle of a round or not, has the same."""
    through = arena()
    for update in range(1, 7):
        through.turn_to(update)
        resumed = arena()
        assert resumed.turn_to(update) == (update in (3, 5))
        jax.tree.map(np.testing.assert_array_equal, through.games, resumed.games)


def test_maps_are_the_same_where_jax_has_no_cpu(monkeypatch):
    usual = cells(arena())

    def missing(*_: Any, **__: Any) -> None:
        raise RuntimeError("Unknown backend cpu")

    monkeypatch.setattr(jax, "local_devices", missing)
    np.testing.assert_array_equal(cells(arena()), usual)


def test_who_keeps_its_maps_keeps_the_first():
    kept = arena(replace(CONFIG, new_maps=0))
    first = cells(kept)
    assert not any(kept.turn_to(update) for update in range(1, 7))
    np.testing.assert_array_equal(cells(kept), first)
    np.testing.assert_array_equal(cells(arena()), first)


def test_games_begin_anew_where_the_map_is_another():
    program: Any = Program(CONFIG, SETUPS)
    (group,), learners = program.groups, program.start()
    for update in (1, 2):
        learners, _ = program.advance(learners, update)
    ((contender,),) = learners
    before = jax.device_get(contender.learner)
    assert group.arena.turn_to(3)
    learner = jax.device_get(group._on_other_maps(contender, 3).learner)
    np.testing.assert_array_equal(np.arange(4)[MOVED], [1, 3])
    np.testing.assert_array_equal(learner.stage.started[0][~AT_HOME], True)
    np.testing.assert_array_equal(learner.stage.episode_return[0][~AT_HOME], 0.0)
    for leaf in jax.tree.leaves(learner.stage.memory):
        assert not leaf[0][~AT_HOME].any()
        assert leaf[0][AT_HOME].any()
    at_home = [
        jax.tree.map(lambda leaf: leaf[0][AT_HOME], one.stage)
        for one in (before, learner)
    ]
    jax.tree.map(np.testing.assert_array_equal, *at_home)
    kept = [one.networks for one in (before, learner)]
    jax.tree.map(np.testing.assert_array_equal, *kept)
    # What is seen is the new map.
    seen = learner.stage.observation.tasks[0, :, :, :2]
    exists = learner.stage.observation.exists[0]
    new = np.asarray(group.arena.games.rules.cell)[0]
    np.testing.assert_array_equal(seen[exists], new[exists])


SHORT: dict[str, Any] = {"games": 4, "steps": 5, "updates": 3}
FROM_MEMORY: dict[str, Any] = {"warm_up": 0, "memory": 40, "batch": 4, "gradients": 1}
METHODS = (
    (ActorConfig(hidden=8), MappoConfig(**SHORT, epochs=1, minibatches=1)),
    (DicgConfig(hidden=8), DicgLearning(**SHORT, epochs=1, minibatches=1)),
    (DgnConfig(hidden=8), DgnLearning(**SHORT, **FROM_MEMORY)),
    (MohitoConfig(hidden=8), MohitoLearning(**SHORT, **FROM_MEMORY)),
)


@pytest.mark.parametrize(("networks", "learning"), METHODS)
def test_every_method_goes_on_on_other_maps(networks, learning):
    config = TrainConfig(
        setups=("wildfire-2x3-S3",),
        maps="moved",
        new_maps=1,
        networks=networks,
        learning=learning,
    )
    program = Program(config, SETUPS)
    learners = program.start()
    for update in (1, 2, 3):
        learners, metrics = program.advance(learners, update)
        assert np.isfinite(program.in_order(metrics["reward"])).all()


def test_new_maps_are_for_games_away_from_home():
    with pytest.raises(PlatoError, match=r"new_maps=2 is for games on other maps"):
        replace(CONFIG, maps="own")
    with pytest.raises(PlatoError, match="new_maps must be from 0"):
        replace(CONFIG, new_maps=-1)
