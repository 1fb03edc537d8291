"""DICG's networks against plain NumPy, and what its switches promise."""

from dataclasses import replace
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moments import FEATURES, ROWS, moments, with_spare_rows
from plato.errors import PlatoError
from plato.game import Observation
from plato.policies.baseline_configs import DicgConfig
from plato.policies.dicg import (
    CoordinationGraph,
    DicgActor,
    FlatCritic,
    Gaussian,
    SummedCritic,
    dicg_critic,
)
from plato.policies.padded import PaddedShape, padded_view

SHAPE = PaddedShape(4, FEATURES.agent, FEATURES.task, FEATURES.actions, pad=3)
CENTRAL = DicgConfig(hidden=8, policy=(8, 6), critic_hidden=7)
APART = replace(CENTRAL, execution="decentralised")
configs = st.sampled_from([CENTRAL, APART])


@cache
def build(config: DicgConfig) -> tuple[DicgActor, FlatCritic | SummedCritic]:
    k_actor, k_critic = jax.random.split(jax.random.key(0))
    actor = DicgActor.create(config, SHAPE, key=k_actor)
    critic = dicg_critic(config, SHAPE, key=k_critic)
    # Far from their beginnings, biases too, so that a wrong number is seen.
    return jax.tree.map(lambda leaf: 2 * leaf + 0.1, (actor, critic))


@jax.jit
def log_policy(actor: DicgActor, seen: Observation):
    return actor.log_policy(seen, None)[0]


@jax.jit
def act(actor: DicgActor, key, seen: Observation):
    return actor.act(key, seen, actor.start(seen.agents.shape[0]))[0]


@jax.jit
def value(critic: FlatCritic | SummedCritic, seen: Observation):
    return critic(seen).mean


def close(one, other) -> None:
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def linear(layer, x):
    return x @ np.asarray(layer.weight) + np.asarray(layer.bias)


def mlp(layers, x):
    """In double precision, as is everything computed here."""
    for layer in layers[:-1]:
        x = np.tanh(linear(layer, x))
    return linear(layers[-1], x)


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def talk(graph: CoordinationGraph, views):
    """The embeddings of a team without spare rows, agent by agent."""
    first = np.tanh(mlp(graph.encode.layers, views))
    attention = np.asarray(graph.attention)
    scores = [[one @ attention @ other for other in first] for one in first]
    edges, nodes = softmax(np.array(scores)), first
    for layer in graph.convolutions:
        heard = [
            sum(w * node for w, node in zip(row, nodes, strict=True)) for row in edges
        ]
        nodes = np.tanh(linear(layer, np.array(heard)))
    return first + nodes


look = jax.jit(partial(padded_view, SHAPE))


def views_of(seen: Observation) -> np.ndarray:
    """Without spare rows, from arrays that fit all moments: one compilation."""
    agents = seen.agents.shape[0]
    features = look(with_spare_rows(seen, *ROWS, seed=0)).features
    return np.asarray(features, np.float64)[:agents]


@given(configs, moments(away=True), st.integers(0, 2**31))
def test_the_policy_is_a_softmax_over_open_slots(config, seen, seed):
    """Also with spare rows of rubbish, which change nothing."""
    actor, _ = build(config)
    inputs = views_of(seen)
    if actor.graph is not None:
        inputs = talk(actor.graph, inputs)
    seen = with_spare_rows(seen, *ROWS, seed=seed)
    scores, view = mlp(actor.head.layers, inputs), look(seen)
    found = np.exp(log_policy(actor, seen))
    for row, mask, actions, probabilities in zip(
        scores, np.asarray(view.mask), np.asarray(view.actions), found, strict=False
    ):
        expected = np.zeros_like(probabilities)
        expected[actions[mask]] = softmax(row[mask])
        close(probabilities, expected)


@given(moments(away=True), st.integers(0, 2**31))
def test_the_flat_critic_reads_all_views_side_by_side(seen, seed):
    _, critic = build(CENTRAL)
    assert isinstance(critic, FlatCritic)
    views = views_of(seen)[: SHAPE.agents]
    missing = SHAPE.agents - len(views)
    joint = np.concatenate([views, -np.ones((missing, SHAPE.width))]).reshape(-1)
    found = value(critic, with_spare_rows(seen, *ROWS, seed=seed))
    close(found, mlp(critic.value.layers, joint)[0])


@given(moments(away=True), st.integers(0, 2**31))
def test_the_graph_critic_adds_up_its_agents_shares(seen, seed):
    _, critic = build(APART)
    assert isinstance(critic, SummedCritic)
    shares = mlp(critic.share.layers, talk(critic.graph, views_of(seen)))
    found = value(critic, with_spare_rows(seen, *ROWS, seed=seed))
    close(found, shares.sum())


edges_of = jax.jit(CoordinationGraph.edges)


@given(moments())
def test_edges_are_distributions_over_the_roster(seen):
    graph = build(CENTRAL)[0].graph
    assert graph is not None
    seen = with_spare_rows(seen, *ROWS, seed=0)
    embeddings = jax.random.normal(jax.random.key(1), (ROWS[0], 8))
    edges = np.asarray(edges_of(graph, embeddings, seen.roster))
    np.testing.assert_allclose(edges.sum(axis=1), 1, rtol=1e-5)
    assert (edges[:, ~np.asarray(seen.roster)] == 0).all()


@given(configs, st.booleans(), moments(away=True), st.integers(0, 2**31))
def test_actions_are_legal(config, greedy, seen, seed):
    seen = with_spare_rows(seen, *ROWS, seed=1)
    actor = replace(build(config)[0], greedy=greedy)
    actions = act(actor, jax.random.key(seed), seen)
    assert np.asarray(seen.action_mask)[np.arange(ROWS[0]), actions].all()
    if greedy:
        likeliest = np.argmax(log_policy(actor, seen), axis=1)
        np.testing.assert_array_equal(actions, likeliest)


def moment(agents: int, tasks: int) -> Observation:
    """Everyone is there, sees everything and may do anything; feature 1 is private."""
    random = np.random.default_rng(0)
    return Observation(
        agents=jnp.asarray(random.normal(size=(agents, 3)), jnp.float32),
        roster=jnp.ones(agents, bool),
        present=jnp.ones(agents, bool),
        tasks=jnp.asarray(random.normal(size=(tasks, 2)), jnp.float32),
        exists=jnp.ones(tasks, bool),
        public=jnp.asarray([True, False, True]),
        sees_agents=jnp.ones((agents, agents), bool),
        sees_tasks=jnp.ones((agents, tasks), bool),
        options=jnp.ones((agents, tasks, 1), bool),
    )


def test_a_decentralised_policy_ignores_its_teammates():
    """What they keep to themselves, and all of them when it does not see them."""
    seen = moment(3, 3)
    private = replace(seen, agents=seen.agents.at[1, 1].add(5.0))
    unseen = replace(seen, sees_agents=jnp.eye(3, dtype=bool))
    moved = replace(unseen, agents=seen.agents.at[1].add(5.0))
    for before, after in ((seen, private), (unseen, moved)):
        for config, same in ((APART, True), (CENTRAL, False)):
            actor, _ = build(config)
            one, other = (log_policy(actor, seen)[0] for seen in (before, after))
            assert np.array_equal(one, other) == same


@pytest.mark.parametrize("frozen", [False, True])
def test_frozen_convolutions_have_no_gradient_and_hand_it_on(frozen):
    seen = moment(3, 3)
    actor = DicgActor.create(
        replace(CENTRAL, frozen_gcn=frozen), SHAPE, key=jax.random.key(2)
    )
    slopes = jax.jit(jax.grad(lambda actor: log_policy(actor, seen)[:, 1].sum()))
    gradient = slopes(actor).graph
    assert gradient is not None
    for layer in gradient.convolutions:
        for leaf in jax.tree.leaves(layer):
            assert (np.asarray(leaf) == 0).all() == frozen
    rest = jax.tree.leaves((gradient.encode, gradient.attention))
    assert all(np.asarray(leaf).any() for leaf in rest)


def test_exploring_draws_from_the_policy_and_notes_how_likely_it_was():
    actor, seen = build(CENTRAL)[0], moment(3, 3)
    keys = jax.random.split(jax.random.key(3), 4000)
    explore = jax.jit(jax.vmap(lambda key: actor.explore(key, seen, None)))
    actions, notes, _ = explore(keys)
    expected = np.asarray(log_policy(actor, seen))
    np.testing.assert_allclose(notes, expected[np.arange(3), actions], rtol=1e-4)
    for agent, logs in enumerate(expected):
        shares = np.bincount(actions[:, agent], minlength=4) / len(actions)
        np.testing.assert_allclose(shares, np.exp(logs), atol=0.03)


def test_frozen_convolutions_change_no_value():
    seen = moment(3, 3)
    one, other = (
        DicgActor.create(replace(CENTRAL, frozen_gcn=f), SHAPE, key=jax.random.key(2))
        for f in (False, True)
    )
    np.testing.assert_array_equal(log_policy(one, seen), log_policy(other, seen))


@pytest.mark.parametrize("config", [CENTRAL, APART])
def test_gradients_of_nobody_and_nothing_are_numbers(config):
    seen = moment(2, 0)
    empty = replace(seen, roster=jnp.zeros(2, bool), present=jnp.zeros(2, bool))

    def total(networks):
        actor, critic = networks
        belief = critic(empty)
        return log_policy(actor, empty).sum() + belief.log_density(jnp.ones(()))

    for leaf in jax.tree.leaves(jax.jit(jax.grad(total))(build(config))):
        assert np.isfinite(np.asarray(leaf)).all()


def test_beliefs_are_normal_distributions():
    mean, std, value = 3.0, 2.0, 4.5
    belief = Gaussian(jnp.asarray(mean), jnp.log(jnp.asarray(std)))
    density = np.exp(-((value - mean) ** 2) / (2 * std**2)) / (std * np.sqrt(2 * np.pi))
    close(belief.log_density(jnp.asarray(value)), np.log(density))


def test_only_the_graph_critic_has_a_least_spread():
    for config, least in ((CENTRAL, -50.0), (APART, np.log(1e-6))):
        critic = replace(build(config)[1], log_std=jnp.asarray(-50.0))
        belief = jax.jit(lambda critic, seen: critic(seen))(critic, moment(2, 1))
        close(belief.log_std, least)


def test_networks_begin_as_their_source_says():
    config = DicgConfig()
    shape = PaddedShape(3, 4, 4)
    actor = DicgActor.create(config, shape, key=jax.random.key(0))
    graph = actor.graph
    assert graph is not None
    assert [layer.weight.shape for layer in actor.head.layers] == [
        *((128, 128), (128, 64), (64, 32)),
        (32, shape.slots),
    ]
    for layer in (*actor.head.layers, *graph.encode.layers):
        bound = np.sqrt(6 / sum(layer.weight.shape))
        spread = np.abs(np.asarray(layer.weight)).max()
        assert 0.9 * bound < spread <= bound
        assert not np.asarray(layer.bias).any()
    assert len(graph.convolutions) == 2
    for leaf in jax.tree.leaves((graph.convolutions, graph.attention)):
        spread = np.abs(np.asarray(leaf)).max()
        assert 0.9 / np.sqrt(128) < spread <= 1 / np.sqrt(128)
    critic = dicg_critic(config, shape, key=jax.random.key(0))
    assert isinstance(critic, FlatCritic)
    assert critic.log_std == 0
    assert critic.value.layers[0].weight.shape == (3 * shape.width, 128)


def test_sizes_that_make_no_sense_are_refused():
    with pytest.raises(PlatoError, match=r"dicg\.hidden must be from 1"):
        DicgConfig(hidden=0)
    with pytest.raises(PlatoError, match=r"dicg\.policy must be from 1"):
        DicgConfig(policy=(8, 0))
