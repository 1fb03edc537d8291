"""Maps that lie elsewhere: the same game, seen from another side."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from plato.domains.setups import load_setup
from plato.domains.wildfire.game import Wildfire
from plato.domains.wildfire.maps import ROOM, laid_anew, seen_at
from plato.game import stack

CONFIG = load_setup("wildfire-3x3-S3").config
GAME = Wildfire.from_config(CONFIG)


@given(st.integers(0, 2**32 - 1))
def test_all_distances_stay(seed):
    laid = laid_anew(stack([GAME] * 3), CONFIG, np.random.default_rng(seed))
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
    laid = laid_anew(stack([roomy] * 8), CONFIG, np.random.default_rng(0))
    assert not np.asarray(laid.rules.position)[:, 3:].any()
    assert not np.asarray(laid.rules.cell)[:, 4:].any()


def test_maps_differ_and_come_from_the_seed():
    games = stack([GAME] * 64)
    first, again, other = (
        np.asarray(laid_anew(games, CONFIG, np.random.default_rng(seed)).rules.cell)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    # Every second game stays at home. The others have eight ways to lie, each in
    # (6 - 2) × (6 - 2) places.
    np.testing.assert_array_equal(first[::2], np.asarray(games.rules.cell)[::2])
    assert len({one.tobytes() for one in first[1::2]}) > 20


def test_nothing_but_places_changes_as_a_game_goes_on():
    laid = laid_anew(stack([GAME] * 2), CONFIG, np.random.default_rng(3))
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
