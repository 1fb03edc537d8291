"""DGN's network against plain NumPy, and its neighbourhoods by hand."""

import subprocess
import sys
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moments import FEATURES, ROWS, moments, with_spare_rows
from plato.configuration import from_mapping, to_mapping
from plato.errors import PlatoError
from plato.game import Observation
from plato.policies.baseline_configs import DgnConfig
from plato.policies.dgn import DgnActor, divergence, nearest
from plato.policies.padded import PaddedShape, padded_view

SHAPE = PaddedShape(4, FEATURES.agent, FEATURES.task, FEATURES.actions, pad=3)
NEAR = DgnConfig(hidden=8, heads=2, head_size=3, neighbours=2)
FAR = DgnConfig(hidden=8, depth=1, layers=1, heads=1, head_size=5, position=(2,))
configs = st.sampled_from([NEAR, FAR])
LOWEST = np.finfo(np.float32).min


@cache
def build(config: DgnConfig) -> DgnActor:
    actor = DgnActor.create(config, SHAPE, key=jax.random.key(0))
    # Far from their beginnings, biases too, so that a wrong number is seen.
    return jax.tree.map(lambda leaf: 8 * leaf + 0.1, actor)


@jax.jit
def q_values(actor: DgnActor, seen: Observation):
    return actor.q_values(seen)


look = jax.jit(partial(padded_view, SHAPE))


@jax.jit
def act(actor: DgnActor, seen: Observation):
    return actor.act(jax.random.key(0), seen, None)[0]


def close(one, other) -> None:
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def relu(layer, x):
    """In double precision, as is everything computed here."""
    return np.maximum(x @ np.asarray(layer.weight) + np.asarray(layer.bias), 0)


def neighbours_of(config: DgnConfig, seen: Observation, me: int) -> list[int]:
    positions = np.asarray(seen.agents)[:, list(config.position)]
    others = [
        (np.abs(positions[me] - positions[j]).max(), j)
        for j in range(len(positions))
        if j != me and seen.sees_agents[me, j]
    ]
    return [me, *(j for _, j in sorted(others)[: config.neighbours])]


def by_hand(actor: DgnActor, config: DgnConfig, seen: Observation):
    """Q-values of all slots, and relations, agent by agent and head by head."""
    features = look(with_spare_rows(seen, *ROWS, seed=0)).features
    features = np.asarray(features, np.float64)[: seen.agents.shape[0]]
    for layer in actor.encode.layers:
        features = relu(layer, features)
    levels, relations, agents = [features], [], len(features)
    for layer in actor.relations:
        query, key, value = (
            relu(part, features).reshape(agents, config.heads, -1)
            for part in (layer.query, layer.key, layer.value)
        )
        relation = np.zeros((config.heads, agents, agents))
        read = np.zeros_like(value)
        for i in range(agents):
            near = neighbours_of(config, seen, i)
            for h in range(config.heads):
                scores = key[near, h] @ query[i, h] / np.sqrt(config.head_size)
                weights = np.exp(scores - scores.max())
                relation[h, i, near] = weights / weights.sum()
                read[i, h] = relation[h, i] @ value[:, h]
        features = relu(layer.out, read.reshape(agents, -1))
        levels.append(features)
        relations.append(relation)
    everything = np.concatenate(levels, axis=1)
    values = everything @ np.asarray(actor.head.weight) + np.asarray(actor.head.bias)
    return values, np.array(relations)


@given(configs, moments(away=True), st.integers(0, 2**31))
def test_values_and_relations_are_those_of_plain_loops(config, seen, seed):
    """Also with spare rows of rubbish, which change nothing."""
    actor = build(config)
    values, relations = by_hand(actor, config, seen)
    seen, agents = with_spare_rows(seen, *ROWS, seed=seed), len(values)
    view, found = look(seen), q_values(actor, seen)
    for i in range(agents):
        mask = np.asarray(view.mask[i])
        expected = np.full(found.values.shape[1], LOWEST)
        expected[np.asarray(view.actions[i])[mask]] = values[i][mask]
        close(found.values[i], expected)
    close(found.relations[:, :, :agents, :agents], relations)
    assert not np.asarray(found.relations)[:, :, agents:].any()
    assert not np.asarray(found.relations)[:, :, :, agents:].any()


@given(configs, moments(away=True))
def test_the_action_is_legal_and_has_the_highest_value(config, seen):
    seen = with_spare_rows(seen, *ROWS, seed=0)
    everyone = np.arange(ROWS[0])
    actions = np.asarray(act(build(config), seen))
    assert np.asarray(seen.action_mask)[everyone, actions].all()
    values = np.asarray(q_values(build(config), seen).values)
    np.testing.assert_array_equal(values[everyone, actions], values.max(axis=1))


def test_neighbourhoods_by_hand():
    """On a line at 0, 1, 2, 4: ties go to the first row, not everyone is seen."""
    positions = jnp.asarray([[0.0, 5.0], [1.0, 5.0], [2.0, 4.0], [4.0, 5.0]])
    others = ~jnp.eye(4, dtype=bool)

    def lists(candidates, count):
        found = np.asarray(nearest(positions, candidates, count))
        return [np.flatnonzero(row).tolist() for row in found]

    assert lists(others, 1) == [[1], [0], [1], [2]]
    assert lists(others, 2) == [[1, 2], [0, 2], [0, 1], [1, 2]]
    assert lists(others, 0) == [[], [], [], []]
    assert lists(others, 9) == [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]
    seldom = others.at[0, 1].set(False).at[3].set(False)
    assert lists(seldom, 1) == [[2], [0], [1], []]


neighbourhood = jax.jit(DgnActor.neighbourhood)


@given(moments(full_view=True), st.integers(0, 2**31))
def test_with_at_most_four_agents_everyone_is_a_neighbour(seen, seed):
    actor = build(FAR)
    agents = seen.agents.shape[0]
    seen = with_spare_rows(seen, *ROWS, seed=seed)
    near = np.asarray(neighbourhood(actor, seen))
    assert (near[:agents].sum(axis=1) == min(agents, 4)).all()
    assert near[:agents, :agents].diagonal().all()
    assert not near[agents:].any()
    assert not near[:, agents:].any()


def test_divergence_of_relations_by_hand():
    one = np.array([[[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]], [[0.2, 0.8, 0], [0, 0, 0]]])
    other = np.array([[[0.25, 0.75, 0], [0.5, 0.5, 0]], [[0.2, 0.8, 0], [0, 0, 0]]])
    one, other = (np.pad(x, ((0, 0), (0, 1), (0, 0))) for x in (one, other))
    found = divergence(jnp.asarray(one, jnp.float32), jnp.asarray(other, jnp.float32))
    first = 0.5 * np.log(0.5 / 0.25) + 0.5 * np.log(0.5 / 0.75)
    close(found, [first / 2, np.log(2) / 2, 0])


@jax.jit
@jax.value_and_grad
def change(actor: DgnActor, now: Observation, later: Observation):
    relations = [actor.q_values(seen).relations[-1] for seen in (now, later)]
    return divergence(*relations).sum()


@given(moments(away=True), moments(away=True))
def test_divergence_is_not_negative_and_its_gradient_is_a_number(now, later):
    """Whoever came and went in between."""
    now, later = (with_spare_rows(seen, *ROWS, seed=0) for seen in (now, later))
    found, gradient = change(build(NEAR), now, later)
    assert found >= -1e-6
    for leaf in jax.tree.leaves(gradient):
        assert np.isfinite(np.asarray(leaf)).all()


def test_gradients_of_nobody_and_nothing_are_numbers():
    empty = Observation(
        agents=jnp.zeros((2, 3)),
        roster=jnp.zeros(2, bool),
        present=jnp.zeros(2, bool),
        tasks=jnp.zeros((0, 2)),
        exists=jnp.zeros(0, bool),
        public=jnp.ones(3, bool),
        sees_agents=jnp.ones((2, 2), bool),
        sees_tasks=jnp.ones((2, 0), bool),
        options=jnp.zeros((2, 0, 1), bool),
    )

    def total(actor):
        found = actor.q_values(empty)
        spread = divergence(found.relations[-1], found.relations[-1])
        return found.values.max(axis=1).sum() + spread.sum()

    for leaf in jax.tree.leaves(jax.jit(jax.grad(total))(build(NEAR))):
        assert np.isfinite(np.asarray(leaf)).all()
    assert act(build(NEAR), empty).tolist() == [0, 0]


def test_the_network_begins_as_its_source_says():
    actor = DgnActor.create(DgnConfig(), PaddedShape(3, 4, 4), key=jax.random.key(0))
    shapes = [layer.weight.shape for layer in actor.encode.layers]
    assert shapes == [(actor.shape.width, 128), (128, 128)]
    assert len(actor.relations) == 2
    assert actor.head.weight.shape == (384, 9)
    for leaf in jax.tree.leaves(actor):
        spread = 0.05 if leaf.ndim == 2 else 0
        np.testing.assert_allclose(np.std(leaf), spread, atol=0.004)


def test_configurations_are_checked():
    with pytest.raises(PlatoError, match=r"dgn\.heads must be from 1"):
        DgnConfig(heads=0)
    with pytest.raises(PlatoError, match=r"dgn\.position is empty"):
        DgnConfig(position=())
    with pytest.raises(PlatoError, match=r"columns \(0, 3\), but agents have 3"):
        DgnActor.create(DgnConfig(position=(0, 3)), SHAPE, key=jax.random.key(0))
    assert from_mapping(DgnConfig, to_mapping(NEAR)) == NEAR


def test_configurations_are_read_without_jax():
    code = "import plato.policies.baseline_configs, sys; print('jax' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
