"""The padded view against cases worked by hand and against plain loops."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moments import FEATURES, ROWS, changed, moments, rearranged, with_spare_rows
from plato.errors import PlatoError
from plato.game import Observation
from plato.policies.padded import PaddedShape, joint_view, padded_view

WIDE = PaddedShape(5, FEATURES.agent, FEATURES.task, FEATURES.actions, pad=8)
TIGHT = replace(WIDE, agents=2, pad=2)
shapes = st.sampled_from([WIDE, TIGHT])
LOWEST = np.finfo(np.float32).min

look = jax.jit(padded_view, static_argnums=0)


def roomy(seen: Observation, seed: int = 0) -> Observation:
    """In arrays that fit all moments: one compilation each."""
    return with_spare_rows(seen, *ROWS, seed=seed)


def by_hand(shape: PaddedShape, seen: Observation, me: int):
    """One agent's vector and the actions behind its slots, in lists."""
    at = jax.tree.map(np.asarray, seen)
    agents, tasks, actions = at.options.shape
    vector = list(at.agents[me])
    others = [j for j in range(agents) if at.roster[j] and j != me]
    for k in range(shape.agents - 1):
        known = k < len(others) and at.sees_agents[me, others[k]]
        row = at.agents[others[k]] if known else [-1] * shape.agent_features
        vector += [v if p else -1 for v, p in zip(row, at.public, strict=True)]
    there = [x for x in range(tasks) if at.exists[x]]
    reachable = [x for x in there if at.options[me, x].any()]
    further = [x for x in there if at.sees_tasks[me, x] and x not in reachable]
    slots, numbers = [*reachable, *further][: shape.pad], [0]
    for x in slots:
        vector += list(at.tasks[x])
        numbers += [
            (1 + x * actions + a) if at.options[me, x, a] else 0 for a in range(actions)
        ]
    empty = shape.pad - len(slots)
    vector += [-1] * (empty * shape.task_features)
    return vector, numbers + [0] * (empty * actions)


MOMENT = Observation(
    # Agent 2 is away and not seen by agent 0; row 1 is no agent at all.
    agents=jnp.asarray([[0.0, 10.0], [9.0, 9.0], [2.0, 12.0], [3.0, 13.0]]),
    roster=jnp.asarray([True, False, True, True]),
    present=jnp.asarray([True, False, False, True]),
    tasks=jnp.asarray([[20.0], [21.0], [22.0], [23.0]]),
    exists=jnp.asarray([True, True, False, True]),
    public=jnp.asarray([True, False]),
    sees_agents=jnp.ones((4, 4), bool).at[0, 2].set(False),
    # Agent 3 does not see task 0.
    sees_tasks=jnp.ones((4, 4), bool).at[3, 0].set(False),
    # Agent 0 may take both actions on task 3, agent 3 the second one on task 1.
    options=jnp.zeros((4, 4, 2), bool).at[0, 3].set(True).at[3, 1, 1].set(True),
)
EXPECTED = {
    0: ([0, 10, -1, -1, 3, -1, 23, 20, 21, -1], [0, 7, 8, 0, 0, 0, 0, 0, 0]),
    1: ([-1] * 10, [0] * 9),
    2: ([2, 12, 0, -1, 3, -1, 20, 21, 23, -1], [0] * 9),
    3: ([3, 13, 0, -1, 2, -1, 21, 23, -1, -1], [0, 0, 4, 0, 0, 0, 0, 0, 0]),
}


def test_a_moment_worked_by_hand():
    view = padded_view(PaddedShape(3, 2, 1, actions=2, pad=4), MOMENT)
    for row, (features, actions) in EXPECTED.items():
        assert view.features[row].tolist() == features
        assert view.actions[row].tolist() == actions
    assert view.mask[0].tolist() == [True] * 3 + [False] * 6
    assert view.mask[3].tolist() == [True, False, True] + [False] * 6


def test_truncation_keeps_the_reachable():
    view = padded_view(PaddedShape(2, 2, 1, actions=2, pad=1), MOMENT)
    assert view.features.tolist() == [
        [0, 10, -1, -1, 23],
        [-1] * 5,
        [2, 12, 0, -1, 20],
        [3, 13, 0, -1, 21],
    ]
    assert view.actions.tolist() == [[0, 7, 8], [0, 0, 0], [0, 0, 0], [0, 0, 4]]


def test_the_joint_view_skips_who_is_no_agent():
    shape = PaddedShape(3, 2, 1, actions=2, pad=4)
    joint = joint_view(shape, MOMENT, padded_view(shape, MOMENT))
    assert joint.tolist() == EXPECTED[0][0] + EXPECTED[2][0] + EXPECTED[3][0]
    larger = replace(shape, agents=4)
    joint = joint_view(larger, MOMENT, padded_view(larger, MOMENT))
    assert joint[-larger.width :].tolist() == [-1] * larger.width


def test_an_option_out_of_sight_keeps_its_slot():
    blind = replace(MOMENT, sees_tasks=jnp.zeros((4, 4), bool))
    view = padded_view(PaddedShape(1, 2, 1, actions=2, pad=2), blind)
    assert view.features[0].tolist() == [0, 10, -1, -1]
    assert view.actions[0].tolist() == [0, 7, 8, 0, 0]


@given(shapes, moments(away=True), st.integers(0, 2**31))
def test_views_are_those_of_plain_loops(shape, seen, seed):
    """In arrays with spare rows of rubbish: capacity is memory."""
    view = jax.device_get(look(shape, roomy(seen, seed)))
    for me in range(seen.agents.shape[0]):
        features, actions = by_hand(shape, seen, me)
        np.testing.assert_array_equal(
            view.features[me], np.asarray(features, np.float32)
        )
        np.testing.assert_array_equal(view.actions[me], actions)
    np.testing.assert_array_equal(view.features[seen.agents.shape[0] :], -1)


@given(shapes, moments(away=True), st.randoms(use_true_random=False))
def test_spare_rows_may_be_anywhere(shape, seen, random):
    agents, tasks = seen.options.shape[:2]
    mine, theirs = (
        sorted(random.sample(range(rows), n))
        for rows, n in zip(ROWS, (agents, tasks), strict=True)
    )
    orders = []
    for rows, kept in zip(ROWS, (mine, theirs), strict=True):
        spare = iter(range(len(kept), rows))
        orders.append(
            [kept.index(r) if r in kept else next(spare) for r in range(rows)]
        )
    mixed = look(shape, rearranged(roomy(seen), *map(np.array, orders)))
    np.testing.assert_array_equal(
        np.asarray(mixed.features)[mine],
        np.asarray(look(shape, roomy(seen)).features)[:agents],
    )


@given(shapes, moments(away=True))
def test_every_slot_is_a_legal_action_and_no_option_is_lost(shape, seen):
    seen = roomy(seen)
    view = look(shape, seen)
    legal, pad = np.asarray(seen.action_mask), shape.pad
    assert np.take_along_axis(legal, np.asarray(view.actions), axis=1).all()
    for agent in range(ROWS[0]):
        found = np.asarray(view.actions)[agent][np.asarray(view.mask)[agent]]
        expected = np.flatnonzero(legal[agent])
        np.testing.assert_array_equal(found, expected[: 1 + pad])


@given(shapes, moments(away=True))
def test_an_action_is_known_where_a_slot_stands_for_it(shape, seen):
    seen = roomy(seen)
    offered = np.asarray(seen.action_mask)
    known = look(shape, seen).known(offered.shape[1])
    np.testing.assert_array_equal(
        known, offered & (np.cumsum(offered, axis=1) <= 1 + shape.pad)
    )


@given(shapes, moments(away=True), st.integers(0, 2**31))
def test_values_of_slots_are_values_of_their_actions(shape, seen, seed):
    seen = roomy(seen)
    view = look(shape, seen)
    values = np.random.default_rng(seed).normal(size=view.actions.shape)
    values = values.astype(np.float32)
    expected = np.full(seen.action_mask.shape, LOWEST)
    for agent, slot in np.argwhere(np.asarray(view.mask)):
        expected[agent, view.actions[agent, slot]] = values[agent, slot]
    found = view.in_game_order(jnp.asarray(values), expected.shape[1])
    np.testing.assert_array_equal(found, expected)


@given(moments(away=True))
def test_what_is_private_or_unseen_stays_out(seen):
    """Not a number in every place that an agent may not look into."""
    agents = seen.agents.shape[0]
    for me in range(agents):
        mine = (np.arange(agents) == me)[:, None]
        shown = np.asarray(seen.sees_agents)[me, :, None] & np.asarray(seen.public)
        tasks = np.asarray(seen.sees_tasks)[me, :, None]
        blinded = changed(
            seen,
            agents=np.where(mine | shown, seen.agents, np.float32(np.nan)),
            tasks=np.where(tasks, seen.tasks, np.float32(np.nan)),
        )
        np.testing.assert_array_equal(
            look(WIDE, roomy(blinded)).features[me],
            look(WIDE, roomy(seen)).features[me],
        )


def test_a_game_without_tasks_offers_noop():
    nothing = rearranged(MOMENT, np.arange(4), np.arange(0))
    view = padded_view(PaddedShape(3, 2, 1, actions=2, pad=2), nothing)
    assert view.features[0].tolist() == [0, 10, -1, -1, 3, -1, -1, -1]
    assert not np.asarray(view.actions).any()
    assert np.asarray(view.mask).sum() == 4
    values = view.in_game_order(jnp.ones((4, 5)), 1)
    assert values.tolist() == [[1]] * 4


def test_views_map_over_games():
    shape = PaddedShape(3, 2, 1, actions=2, pad=4)
    games = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), MOMENT)
    views = jax.jit(jax.vmap(partial(padded_view, shape)))(games)
    assert views.features[1, 0].tolist() == EXPECTED[0][0]
    assert views.mask.shape == (2, 4, shape.slots)


def test_sizes_that_make_no_sense_are_refused():
    with pytest.raises(PlatoError, match="pad must be from 1"):
        PaddedShape(3, 2, 1, pad=0)
    with pytest.raises(PlatoError, match=r"built for \(2, 1, 1\).*not for \(2, 1, 2\)"):
        padded_view(PaddedShape(3, 2, 1), MOMENT)
