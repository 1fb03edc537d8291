"""Other maps: the same game, seen from another side, and games that lie otherwise."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plato.domains.setups import load_setup
from plato.domains.wildfire.game import Wildfire
from plato.domains.wildfire.maps import (
    LARGEST,
    ROOM,
    moved,
    scattered,
    scattered_config,
    seen_at,
)
from plato.errors import PlatoError
from plato.game import stack

CONFIG = load_setup("wildfire-3x3-S3").config
GAME = Wildfire.from_config(CONFIG)


@given(st.integers(0, 2**32 - 1))
def test_all_distances_stay(seed):
    laid = moved(stack([GAME] * 3), CONFIG, np.random.default_rng(seed))
    for i in range(3):
        before = np.concatenate([GAME.rules.position, GAME.rules.cell])
        after = np.concatenate([laid.rules.position[i], laid.rules.cell[i]])
        for power in (1, 2, np.inf):  # as engines, crows and kings go
            np.testing.assert_allclose(
                np.linalg.norm(after[:, None] - after[None], power, axis=2),
                np.linalg.norm(before[:, None] - before[None], power, axis=2),
                atol=1e-5,
            )
        assert after.min() >= 0
        assert after.max() < ROOM


def test_rows_that_hold_nothing_stay_empty():
    roomy = Wildfire.from_config(CONFIG, agents=5, tasks=7)
    laid = moved(stack([roomy] * 8), CONFIG, np.random.default_rng(0))
    assert not np.asarray(laid.rules.position)[:, 3:].any()
    assert not np.asarray(laid.rules.cell)[:, 4:].any()


def test_maps_differ_and_come_from_the_seed():
    games = stack([GAME] * 64)
    first, again, other = (
        np.asarray(moved(games, CONFIG, np.random.default_rng(seed)).rules.cell)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    # Every second game stays at home. The others have eight ways to lie, each in
    # (6 - 2) × (6 - 2) places.
    np.testing.assert_array_equal(first[::2], np.asarray(games.rules.cell)[::2])
    assert len({one.tobytes() for one in first[1::2]}) > 20


def test_nothing_but_places_changes_as_a_game_goes_on():
    laid = moved(stack([GAME] * 2), CONFIG, np.random.default_rng(3))
    laid = jax.tree.map(lambda leaf: leaf[1], laid)
    key = jax.random.key(0)
    states = [game.reset(key)[0] for game in (GAME, laid)]
    for _ in range(30):
        key, k_act, k_noise = jax.random.split(key, 3)
        seen = [game.observe(s) for game, s in zip((GAME, laid), states, strict=True)]
        np.testing.assert_array_equal(seen[0].options, seen[1].options)
        np.testing.assert_array_equal(seen[0].tasks[:, 2:], seen[1].tasks[:, 2:])
        np.testing.assert_array_equal(seen[0].agents[:, 2:], seen[1].agents[:, 2:])
        assert (np.asarray(seen[0].tasks) != np.asarray(seen[1].tasks)).any()
        jax.tree.map(np.testing.assert_array_equal, seen[0], seen_at(GAME, seen[1]))
        legal = seen[0].action_mask
        actions = jax.random.categorical(k_act, jnp.where(legal, 0.0, -jnp.inf))
        noise = GAME.noise(k_noise)
        done = [
            game.transition(state, actions, noise)
            for game, state in zip((GAME, laid), states, strict=True)
        ]
        jax.tree.map(np.testing.assert_array_equal, done[0], done[1])
        states = [state for state, _ in done]


def kinds_of_fires(config) -> set[tuple]:
    fire, rewards = config.fire, config.reward.fire_rewards
    grids = (fire.fire_types, fire.lit, fire.ignition_temp, rewards)
    return {tuple(grid[y][x] for grid in grids) for y, x in config.fire_cells}


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, LARGEST**2 + 9))
def test_scattered_maps_have_agents_that_reach_fires_of_the_setups_kinds(
    seed, agents, fires
):
    random = np.random.default_rng(seed)
    found = scattered_config(CONFIG, agents, fires, random)
    assert min(2, agents) <= len(found.agent.agents) <= agents
    assert min(2, fires) <= len(found.fire_cells) <= fires
    assert max(found.grid_height, found.grid_width) <= LARGEST
    assert kinds_of_fires(found) <= kinds_of_fires(CONFIG)
    for place, reach in zip(found.agent.agents, found.agent.attack_range, strict=True):
        far = np.abs(np.subtract(found.fire_cells, place)).max(axis=1)
        assert far.min() <= reach
    assert found.stochastic == CONFIG.stochastic


def test_a_scattered_map_may_burn_all_over():
    """Where more fires may be than a grid has cells."""
    random, fires = np.random.default_rng(0), LARGEST**2
    most = [scattered_config(CONFIG, 3, 10 * fires, random) for _ in range(100)]
    assert max(len(found.fire_cells) for found in most) == fires


def test_without_fires_there_is_nothing_to_scatter():
    rewards = replace(CONFIG.reward, fire_rewards=((0.0,) * 3,) * 3)
    fire = replace(CONFIG.fire, fire_types=((0,) * 3,) * 3, lit=((False,) * 3,) * 3)
    none = replace(CONFIG, fire=fire, reward=rewards)
    with pytest.raises(PlatoError, match=r"without fires .* fire\.fire_types"):
        scattered_config(none, 3, 4, np.random.default_rng(0))


def test_one_agent_may_be_scattered():
    team = CONFIG.agent
    alone = replace(
        team,
        agents=team.agents[:1],
        fire_reduction_power=team.fire_reduction_power[:1],
        attack_range=team.attack_range[:1],
        initial_suppressant=team.initial_suppressants[:1],
    )
    config = replace(CONFIG, agent=alone)
    games = stack([Wildfire.from_config(config, tasks=6)] * 8)
    found = scattered(games, config, np.random.default_rng(0))
    assert (np.asarray(found.rules.roster).sum(axis=1) == 1).all()
    assert (np.asarray(found.rules.size) > 0).any(axis=1).all()


def test_all_agents_may_have_the_same_suppressant_in_one_number():
    alike = replace(CONFIG, agent=replace(CONFIG.agent, initial_suppressant=1))
    found = scattered_config(alike, 4, 5, np.random.default_rng(0))
    assert set(found.agent.initial_suppressants) == {1}


def test_every_fourth_game_is_scattered_by_the_seed():
    roomy = Wildfire.from_config(CONFIG, agents=5, tasks=6)
    first, again, other = (
        scattered(stack([roomy] * 40), CONFIG, np.random.default_rng(seed))
        for seed in (0, 0, 1)
    )
    jax.tree.map(np.testing.assert_array_equal, first, again)
    assert (np.asarray(first.rules.cell) != np.asarray(other.rules.cell)).any()
    for i in sorted({*range(40)} - {*range(3, 40, 4)}):
        jax.tree.map(
            lambda all_of, own, i=i: np.testing.assert_array_equal(all_of[i], own),
            first,
            roomy,
        )
    agents = np.asarray(first.rules.roster).sum(axis=1)[3::4]
    fires = (np.asarray(first.rules.size) > 0).sum(axis=1)[3::4]
    # Its team of three or a smaller one, though there is room for more.
    assert set(agents) == {2, 3}
    assert len(set(fires)) > 2
    one = stack([roomy])
    jax.tree.map(
        np.testing.assert_array_equal,
        scattered(one, CONFIG, np.random.default_rng(0)),
        one,
    )
