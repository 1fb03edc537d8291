"""The open game itself: auto-reset, recorded noise, stacking, and the checker."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import PRNGKeyArray, TypeCheckError

from parcels import Parcels, ParcelState, parcels
from plato.checking import check_game
from plato.domains.setups import Setup, load_setup
from plato.domains.wildfire.game import Wildfire
from plato.errors import PlatoError
from plato.game import ReplayedNoise, stack, step_and_reset
from plato.learners.baseline_configs import MohitoLearning
from plato.learners.config import TrainConfig
from plato.learners.program import Program
from plato.policies.mohito_config import MohitoConfig
from small_runs import SMALL


def wildfire(name: str = "wildfire-3x3-S3", **fields: Any) -> Wildfire:
    return Wildfire.from_config(replace(load_setup(name).config, **fields))


def test_wildfire_passes_the_checker():
    check_game(wildfire(max_steps=30), steps=70)


def test_a_second_domain_passes_the_checker():
    check_game(parcels())


class KeyedState(eqx.Module):
    inner: ParcelState
    key: PRNGKeyArray


class Keyed(Parcels):
    """Parcels that carry a random key along in their state."""

    def initial(self, key) -> Any:
        return KeyedState(super().initial(key), key)

    def observe(self, state):
        return super().observe(state.inner)

    def transition(self, state, actions, noise) -> Any:
        inner, outcome = super().transition(state.inner, actions, noise)
        return KeyedState(inner, jax.random.fold_in(state.key, inner.time)), outcome


def test_a_random_key_in_the_state_passes_the_checker():
    check_game(Keyed(jnp.asarray(0.3), jnp.asarray(7)), steps=10)


class Static(Parcels):
    """Parcels of which nothing is data."""

    chance: Any = eqx.field(static=True)
    limit: Any = eqx.field(static=True)

    @property
    def horizon(self):
        return jnp.asarray(self.limit)


def test_a_game_without_arrays_is_refused_before_it_is_trained():
    game = Static(0.3, 7)
    with pytest.raises(PlatoError, match=r"Static: the game holds no array.*horizon"):
        check_game(game, steps=5)
    with pytest.raises(PlatoError, match="mine: the game holds no array"):
        Program(replace(SMALL, setups=("mine",)), {"mine": Setup("mine", game)})


Broken = Callable[[Parcels, Any], Any]


class NearParcels(Parcels):
    """Parcels that say that an agent never gets beyond some of them."""

    said: Any

    @property
    def within_reach(self):
        return self.said


def test_what_is_said_to_be_within_reach_is_held_against_the_options():
    nowhere = jnp.zeros((2, 4), bool)
    for said, words in [
        (nowhere, "an option points at a task that is not within_reach of its agent"),
        (nowhere[0], r"within_reach has the shape \(4,\), not \(2, 4\)"),
        (nowhere + 1.0, "within_reach is made of float32, not of bool"),
    ]:
        with pytest.raises(PlatoError, match=words):
            check_game(NearParcels(jnp.asarray(0.3), jnp.asarray(7), said), steps=10)
    game = NearParcels(jnp.asarray(0.3), jnp.asarray(7), nowhere[0])
    mohito = TrainConfig(
        setups=("mine",),
        networks=MohitoConfig(hidden=3, layers=2),
        learning=MohitoLearning(games=1, steps=4, memory=8, warm_up=4, batch=2),
    )
    with pytest.raises(PlatoError, match=r"within_reach of this game has the shape"):
        Program(mohito, {"mine": Setup("mine", game)})
    side = jnp.arange(4)[None, :] // 2 == jnp.arange(2)[:, None]
    check_game(NearParcels(jnp.asarray(0.3), jnp.asarray(7), side), steps=10)


class BrokenParcels(Parcels):
    """Parcels with one of its methods replaced."""

    replaced: str = eqx.field(static=True)
    by: Broken = eqx.field(static=True)

    def observe(self, state):
        seen = super().observe(state)
        return self.by(self, seen) if self.replaced == "observe" else seen

    def transition(self, state, actions, noise):
        result = super().transition(state, actions, noise)
        return self.by(self, result) if self.replaced == "transition" else result


def seen_with(**changes: Any) -> Broken:
    return lambda game, seen: replace(seen, **changes)


def outcome_with(**changes: Any) -> Broken:
    return lambda game, result: (result[0], replace(result[1], **changes))


def unhinged(game: Parcels, result: Any) -> Any:
    return result[0], replace(result[1], reward=jnp.full(2, random.random()))


@pytest.mark.parametrize(
    ("method", "by", "words"),
    [
        ("observe", seen_with(options=jnp.ones((2, 4, 2), bool)), "does not exist"),
        (
            "observe",
            lambda g, s: replace(s, present=jnp.zeros(2, bool)),
            "not present has options",
        ),
        (
            "observe",
            lambda g, s: replace(s, sees_tasks=jnp.zeros((2, 4), bool)),
            "does not see",
        ),
        (
            "observe",
            lambda g, s: replace(s, sees_agents=jnp.zeros((2, 2), bool)),
            "does not see itself",
        ),
        (
            "observe",
            lambda g, s: replace(s, tasks=s.tasks * jnp.nan),
            "existing task is not a finite",
        ),
        (
            "observe",
            lambda g, s: replace(s, agents=s.agents / 0),
            "feature of an agent is not a finite",
        ),
        (
            "observe",
            lambda g, s: replace(s, roster=~s.roster),
            "not the game's roster",
        ),
        (
            "transition",
            outcome_with(reward=jnp.full(2, jnp.inf)),
            "reward is not a fin",
        ),
        (
            "transition",
            outcome_with(truncated=jnp.array(False)),
            "goes on after 7 steps",
        ),
        (
            "transition",
            outcome_with(terminated=jnp.array(True), truncated=jnp.array(True)),
            "at once",
        ),
        ("transition", outcome_with(events={"lost": jnp.array(-1)}), "negative number"),
        ("transition", unhinged, "different results for the same key"),
        (
            "transition",
            lambda g, r: (
                replace(r[0], resting=jnp.where(r[0].waiting[:2], 1, 0)),
                r[1],
            ),
            "step was compiled 2 times",
        ),
    ],
)
def test_the_checker_finds(method, by, words):
    game = BrokenParcels(jnp.asarray(0.3), jnp.asarray(7), method, by)
    with pytest.raises(PlatoError) as caught:
        check_game(game, steps=20)
    assert words in str(caught.value)


class SmallRoster(Parcels):
    """Says that its second courier does not exist, and lets it work all the same."""

    @property
    def roster(self):
        return jnp.asarray([True, False])


def test_the_checker_finds_who_is_not_on_the_roster():
    with pytest.raises(PlatoError) as caught:
        check_game(SmallRoster(jnp.asarray(0.3), jnp.asarray(7)), steps=20)
    assert "present that is not on the roster" in str(caught.value)
    assert "not on the roster gets a reward" in str(caught.value)


class Forgetful(Parcels):
    """Keeps a count in an array that it changes in place."""

    count: Any

    def noise(self, key):
        self.count[0] += 1
        return super().noise(key)


def test_the_checker_finds_a_game_that_changes():
    game = Forgetful(jnp.asarray(0.3), jnp.asarray(7), np.zeros(1, np.int32))
    with pytest.raises(PlatoError, match="changes the game itself"):
        check_game(game, steps=5)


class Crowded(Parcels):
    """Rewards that depend on how many games run beside it."""

    def transition(self, state, actions, noise):
        state, outcome = super().transition(state, actions, noise)
        alone = jax.custom_batching.custom_vmap(lambda reward: reward)

        @alone.def_vmap
        def together(size, batched, reward):
            return reward + size, True

        return state, replace(outcome, reward=alone(outcome.reward))


def test_the_checker_finds_what_changes_under_vmap():
    with pytest.raises(PlatoError, match=r"something else under jax\.vmap"):
        check_game(Crowded(jnp.asarray(0.3), jnp.asarray(7)), steps=5)


@pytest.mark.parametrize(
    ("by", "words"),
    [
        (
            lambda g, r: (replace(r[0], time=r[0].time * 1.0), r[1]),
            "transition changes the form of the state",
        ),
        (outcome_with(reward=jnp.zeros(3)), "outcome.reward is float32 of shape (3,)"),
        (outcome_with(terminated=jnp.zeros(2, bool)), "outcome.terminated is bool of"),
        (outcome_with(events={"x": jnp.zeros(())}), "events['x'] must be one whole"),
    ],
)
def test_the_checker_finds_wrong_forms(by, words):
    game = BrokenParcels(jnp.asarray(0.3), jnp.asarray(7), "transition", by)
    # Where types are checked, as here, a wrong outcome cannot even be built.
    with pytest.raises((PlatoError, TypeCheckError)) as caught:
        check_game(game, steps=5)
    assert words in str(caught.value) or "Outcome.__init__" in str(caught.value)


def test_an_episode_that_ends_begins_anew_and_shows_its_end():
    game = wildfire(max_steps=3)
    key = jax.random.key(0)
    state, _ = game.reset(key)
    nobody = jnp.zeros(3, jnp.int32)
    turns = []
    for t in range(3):
        turns.append(step_and_reset(game, jax.random.fold_in(key, t), state, nobody))
        state = turns[-1].state
    turn = turns[-1]
    assert [bool(t.outcome.truncated) for t in turns] == [False, False, True]
    assert not any(t.outcome.terminated for t in turns)
    first = game.observe(game.initial(key))
    assert int(state.time) == 0
    np.testing.assert_array_equal(turn.observation.tasks, first.tasks)
    assert not np.array_equal(turn.final_observation.tasks, first.tasks)


def test_a_game_that_terminates_is_not_truncated():
    game = wildfire("wildfire-2x3-S0")
    state, _ = game.reset(jax.random.key(0))
    _, outcome = game.transition(
        state, jnp.asarray([1, 2, 2]), game.noise(jax.random.key(0))
    )
    assert outcome.terminated
    assert not outcome.truncated
    assert outcome.reward.tolist() == [4.0] * 3


def test_recorded_noise_is_met_in_every_episode():
    game = wildfire(max_steps=4)
    keys = jax.random.split(jax.random.key(5), 4)
    replayed = ReplayedNoise(game, jax.vmap(game.noise)(keys))
    check_game(replayed, steps=10)
    nobody = jnp.zeros(3, jnp.int32)
    histories = []
    for seed in (1, 2):
        key = jax.random.key(seed)
        state, _ = replayed.reset(key)
        history = []
        for _ in range(4):
            state, seen, outcome = replayed.step(key, state, nobody)
            history.append((np.asarray(seen.tasks), np.asarray(outcome.reward)))
        histories.append(history)
    jax.tree.map(np.testing.assert_array_equal, *histories)
    plain, seen = game.reset(jax.random.key(0))
    for key in keys:
        plain, seen, _ = game.step(key, plain, nobody)
    np.testing.assert_array_equal(seen.tasks, histories[0][-1][0])


def test_only_games_of_equal_capacity_stack():
    small, large = wildfire("wildfire-2x3-S3"), wildfire("wildfire-3x3-S3")
    with pytest.raises(PlatoError, match="same capacity"):
        stack([small, large])
    roomy = Wildfire.from_config(load_setup("wildfire-2x3-S3").config, tasks=4)
    assert stack([roomy, large]).capacity == large.capacity


def test_too_few_rows_are_refused():
    with pytest.raises(PlatoError, match="4 tasks; 3 rows are too few"):
        Wildfire.from_config(load_setup("wildfire-3x3-S3").config, tasks=3)


def test_a_grid_on_which_nothing_can_burn_is_over_at_once():
    base = load_setup("wildfire-2x3-S0").config
    nothing = ((False,) * 3,) * 2
    fire = replace(base.fire, fire_types=((0,) * 3,) * 2, lit=nothing)
    game = Wildfire.from_config(replace(base, fire=fire))
    check_game(game, steps=5)
    state, seen = game.reset(jax.random.key(0))
    assert not seen.exists.any()
    _, _, outcome = game.step(jax.random.key(0), state, jnp.zeros(3, jnp.int32))
    assert outcome.terminated


def test_actions_of_a_task_are_told_apart():
    seen = parcels().observe(
        ParcelState(jnp.ones(4, bool), jnp.asarray([0, 1]), jnp.asarray(0))
    )
    assert seen.action_mask.tolist() == [
        [True] + [True, True, True, True] + [False] * 4,
        [True] + [False] * 8,  # away: NOOP only
    ]
