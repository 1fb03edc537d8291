"""Games seen from PettingZoo and from NumPy."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from pettingzoo.test import (
    api_test,
    parallel_api_test,
    parallel_seed_test,
    seed_test,
)

import plato
from parcels import parcels
from plato.domains.setups import load_setup
from plato.errors import PlatoError

SETUPS = ("wildfire-3x3-S3", "wildfire-2x3-S0", "wildfire-4x4-S1")
# PettingZoo prefers plain arrays to dictionaries and says so; masks need dictionaries.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.mark.parametrize("setup", SETUPS)
class TestPettingZooSuite:
    def test_parallel_api(self, setup):
        parallel_api_test(plato.parallel_env(setup), num_cycles=150)

    def test_api(self, setup):
        api_test(plato.aec_env(setup), num_cycles=150)

    def test_parallel_seed(self, setup):
        parallel_seed_test(lambda: plato.parallel_env(setup), num_cycles=50)

    def test_seed(self, setup):
        seed_test(lambda: plato.aec_env(setup), num_cycles=50)


def test_any_game_has_both_views():
    parallel_api_test(plato.parallel_env(parcels()), num_cycles=50)
    api_test(plato.aec_env(parcels()), num_cycles=50)


def test_names_masks_and_observations():
    env = plato.parallel_env("wildfire-3x3-S3")
    observations, infos = env.reset(seed=1)
    assert env.agents == ["firefighter_1", "firefighter_2", "firefighter_3"]
    seen = observations["firefighter_1"]
    assert seen["self"].tolist() == [0, 0, 1, 2]
    # This setup shows a teammate's suppressant, but not its power.
    assert seen["others"].tolist() == [[1, 1, 2], [2, 2, 2]]
    assert seen["tasks"].tolist() == [
        [0, 1, 1, 1],
        [1, 0, 2, 2],
        [1, 2, 1, 1],
        [2, 1, 2, 2],
    ]
    assert seen["action_mask"].tolist() == [1, 1, 1, 0, 0]
    assert infos["firefighter_1"]["action_mask"].tolist() == [1, 1, 1, 0, 0]
    assert env.state().shape == (3 * 5 + 4 * 5,)


def test_a_game_ends_for_everyone_at_once():
    env = plato.parallel_env("wildfire-2x3-S0")
    env.reset(seed=0)
    actions = {"firefighter_1": 1, "firefighter_2": 2, "firefighter_3": 2}
    _, rewards, terminated, truncated, _ = env.step(actions)
    assert rewards == dict.fromkeys(actions, 4.0)
    assert all(terminated.values())
    assert not any(truncated.values())
    assert env.agents == []
    with pytest.raises(PlatoError, match="call reset"):
        env.step(actions)


def test_zoo_refuses_what_is_not_offered():
    env = plato.parallel_env("wildfire-3x3-S3")
    env.reset(seed=0)
    idle = dict.fromkeys(env.agents, 0)
    for action in (4, -1, 99, 1.0, "1", True, None, [1], np.array([1]), 2**70):
        with pytest.raises(PlatoError) as caught:
            env.step(idle | {"firefighter_1": action})
        assert "The action of firefighter_1 is" in str(caught.value)
        assert "choose one of [0, 1, 2]" in str(caught.value)
    for wrong in ({}, {"firefighter_2": 0}, idle | {"pilot": 0}):
        with pytest.raises(PlatoError, match="one action for each of"):
            env.step(wrong)
    env.step(idle | {"firefighter_1": np.int8(1)})  # nothing was harmed


def test_aec_refuses_what_is_not_offered():
    env = plato.aec_env("wildfire-3x3-S3")
    env.reset(seed=0)
    with pytest.raises(PlatoError, match="firefighter_1 is 4, which is not offered"):
        env.step(4)
    for action in (1, 2, 3):  # and it is still the first agent's turn
        env.step(action)
    assert env.agent_selection == "firefighter_1"


def test_seeds_make_games():
    def rewards(seed):
        env = plato.parallel_env("wildfire-3x3-S3")
        env.reset(seed=seed)
        idle = dict.fromkeys(env.agents, 0)
        return [env.step(idle)[1]["firefighter_1"] for _ in range(20) if env.agents]

    assert rewards(1) == rewards(1)
    assert rewards(1) != rewards(2)


def test_what_an_agent_does_not_see_is_not_shown():
    env = plato.parallel_env(parcels())
    observations, _ = env.reset(seed=3)
    first, second = observations["courier_0"], observations["courier_1"]
    assert first["exists"][2:].tolist() == [0, 0]  # parcels of the other side
    assert second["exists"][:2].tolist() == [0, 0]
    assert first["exists"].any()
    assert not first["tasks"][2:].any()
    assert first["others"].shape == (1, 1)  # only one of two features is public


def test_a_team_of_one():
    config = load_setup("wildfire-2x3-S1").config
    agent = replace(
        config.agent,
        agents=((0, 1),),
        fire_reduction_power=(1.0,),
        attack_range=(1,),
        initial_suppressant=2,
    )
    game = plato.Wildfire.from_config(replace(config, agent=agent))
    parallel_api_test(plato.parallel_env(game), num_cycles=30)


def test_without_pettingzoo_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    monkeypatch.delitem(sys.modules, "plato.adapters.zoo", raising=False)
    with pytest.raises(PlatoError, match=r"pip install 'plato-marl\[zoo\]'"):
        plato.parallel_env("wildfire-3x3-S3")


class TestBatchedGame:
    def test_steps_and_begins_anew(self):
        games = plato.BatchedGame("wildfire-2x3-S0", games=5, seed=3)
        seen = games.reset()
        assert seen.options.shape == (5, 3, 2, 1)
        assert isinstance(seen.options, np.ndarray)
        fight = np.tile([1, 2, 2], (5, 1))
        step = games.step(fight)
        assert step.reward.tolist() == [[4.0] * 3] * 5
        assert step.terminated.all()
        assert not step.truncated.any()
        assert step.events["putouts"].tolist() == [2] * 5
        assert step.observation.exists.all()  # of the new episode
        assert not step.final_observation.exists.any()

    def test_the_same_seed_gives_the_same_games(self):
        def rewards(seed):
            games = plato.BatchedGame("wildfire-3x3-S3", games=16, seed=seed)
            games.reset()
            idle = np.zeros((16, 3), int)
            return np.concatenate([games.step(idle).reward for _ in range(20)])

        np.testing.assert_array_equal(rewards(1), rewards(1))
        assert not np.array_equal(rewards(1), rewards(2))
        games = plato.BatchedGame("wildfire-3x3-S3", games=16, seed=9)
        first, again = games.reset(seed=4), games.reset(seed=4)
        np.testing.assert_array_equal(first.tasks, again.tasks)

    @pytest.mark.parametrize(
        ("actions", "words"),
        [
            (np.zeros((2, 2), int), r"whole numbers of shape \(3, 3\)"),
            (np.zeros((3, 3)), "whole numbers of shape"),
            ([[0], [0, 0]], "whole numbers of shape"),
            (np.array([[0] * 3, [0] * 3, [0, 0, 1]]), r"actions\[2, 2\] is 1"),
            (np.array([[-1, 0, 0]] * 3), r"actions\[0, 0\] is -1"),
            (np.array([[0, 5, 0]] * 3), r"actions\[0, 1\] is 5.*\[0, 1, 2, 3, 4\]"),
        ],
    )
    def test_refuses_what_is_not_offered(self, actions, words):
        games = plato.BatchedGame("wildfire-3x3-S3", games=3)
        games.reset()
        with pytest.raises(PlatoError, match=words):
            games.step(actions)
        games.step(np.zeros((3, 3), int))

    def test_needs_a_reset_and_a_game(self):
        with pytest.raises(PlatoError, match="reset"):
            plato.BatchedGame("wildfire-3x3-S3").step(np.zeros((1, 3), int))
        with pytest.raises(PlatoError, match="games must be from 1"):
            plato.BatchedGame("wildfire-3x3-S3", games=0)
        for seed in (-1, 2**70):
            with pytest.raises(PlatoError, match="seed must be from 0"):
                plato.BatchedGame("wildfire-3x3-S3", seed=seed)
