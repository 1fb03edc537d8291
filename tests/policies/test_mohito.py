"""MOHITO's graphs node by node, and its networks against loops in NumPy."""

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moments import FEATURES, ROWS, moments, offered, rearranged, with_spare_rows
from plato.errors import PlatoError
from plato.game import Features, Observation
from plato.learners.exploration import Explorer
from plato.policies.hypergraph import (
    Graph,
    Layout,
    critic_graph,
    observation_graphs,
    taken,
)
from plato.policies.mohito import (
    Attention,
    GraphNetwork,
    GraphNorm,
    MohitoActors,
    MohitoCritics,
    pair_scores,
    per_agent,
)
from plato.policies.mohito_config import MohitoConfig

CONFIG = MohitoConfig(hidden=4)
# Compiled as a whole: operation by operation, each would be compiled by itself.
create_actors = jax.jit(partial(MohitoActors.create, CONFIG), static_argnums=(0, 1))
create_networks = jax.jit(partial(per_agent, CONFIG), static_argnums=(0, 1))
graphs_of = jax.jit(observation_graphs)
ACTORS = create_actors(FEATURES, 3, key=jax.random.key(0))
MORE_ROWS = (8, 10)

# Agent 0 may do both things to task 0 and cannot reach task 1, agent 1 may do the
# second thing to task 1 and cannot reach task 0; task 2 does not exist.
DRAWN = Observation(
    agents=jnp.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
    roster=jnp.ones(2, bool),
    present=jnp.ones(2, bool),
    tasks=jnp.asarray([[7.0, 8.0], [9.0, 10.0], [99.0, 99.0]]),
    exists=jnp.asarray([True, True, False]),
    public=jnp.asarray([True, False, True]),
    sees_agents=jnp.ones((2, 2), bool),
    sees_tasks=jnp.ones((2, 3), bool),
    options=jnp.zeros((2, 3, 2), bool).at[(0, 0, 1), (0, 0, 1), (0, 1, 1)].set(True),
)
DRAWN_FEATURES = Features(agent=3, task=2, actions=2)


def seen_otherwise(**fields: Any) -> Observation:
    return Observation(**{**vars(DRAWN), **fields})


create_layer = jax.jit(partial(Attention.create, 4, 3, 2))
attend = jax.jit(Attention.__call__)
LAYER = create_layer(key=jax.random.key(9))
# What an agent's layer makes of a node, by every feature of every node.
slopes = jax.jit(jax.jacobian(lambda nodes, graph: LAYER(graph, nodes)))


def edges_of(graph: Graph) -> set[tuple[int, int]]:
    """(from, to) of every edge of one graph: who has a say in what becomes of whom."""
    felt = np.abs(slopes(graph.nodes, graph)).max(axis=(1, 3)) > 0
    felt &= ~np.eye(len(felt), dtype=bool)
    return {(int(j), int(i)) for i, j in np.argwhere(felt)}


def one(graphs: Graph, index: int) -> Graph:
    return jax.tree.map(lambda leaf: leaf[index], graphs)


# 0-6 hyperedges, 7 self, 8-11 tasks, 12-13 others, 14-16 verbs
FIRST_EDGES = {
    *((7, 0), (8, 0), (14, 0)),
    *((7, 1), (8, 1), (15, 1)),
    *((7, 6), (11, 6), (16, 6)),
    *((13, 7), (9, 7)),
}
# 0-6 and 7-13 hyperedges, 14-15 selves, 16-19 tasks, 20-22 verbs
TEAM_EDGES = {
    *((14, 0), (16, 0), (20, 0), (14, 1), (16, 1), (21, 1)),
    *((14, 6), (19, 6), (22, 6), (17, 14)),
    *((15, 10), (17, 10), (21, 10), (15, 13), (19, 13), (22, 13), (16, 15)),
    *((14, 15), (15, 14)),
    *((i, j) for i in (0, 1, 6, 10, 13) for j in (0, 1, 6, 10, 13) if i != j),
}


def test_the_graph_of_a_hand_drawn_moment():
    layout = Layout.of_agent(DRAWN)
    assert (layout.hyperedges.stop, layout.selves.stop) == (7, 8)
    assert (layout.tasks.stop, layout.others.stop, layout.verbs.stop) == (12, 14, 17)
    first, second = (one(graphs_of(DRAWN), agent) for agent in range(2))
    expected = {
        0: [5, 1, 1, 1],
        1: [5, 1, 1, 1],
        6: [5, 1, 1, 1],
        7: [1, 1, 2, 3],
        8: [3, 7, 8, -1],
        9: [3, 9, 10, -1],
        11: [3, -1, -1, -1],
        13: [2, 4, -1, 6],
        14: [4, 0, -1, -1],
        15: [4, 1, -1, -1],
        16: [4, -1, -1, -1],
    }
    assert np.flatnonzero(first.copies).tolist() == list(expected)
    for node, features in expected.items():
        assert first.nodes[node].tolist() == features, node
    assert edges_of(first) == FIRST_EDGES
    assert np.flatnonzero(second.copies).tolist() == [3, 6, 7, 8, 9, 11, 12, 15, 16]
    assert second.nodes[12].tolist() == [2, 1, -1, 3]
    assert edges_of(second) == {
        *((7, 3), (9, 3), (15, 3)),
        *((7, 6), (11, 6), (16, 6)),
        *((12, 7), (8, 7)),
    }


MADE = jnp.arange(2 * 7 * 4, dtype=jnp.float32).reshape(2, 7, 4)
team_of = jax.jit(critic_graph)


def test_the_critics_graph_of_a_hand_drawn_moment():
    team = team_of(DRAWN, MADE)
    copies = dict.fromkeys((0, 1, 6, 10, 13, 14, 15), 1)
    # Both know two tasks and the null task; only the second thing is for both to do.
    copies |= {16: 2, 17: 2, 19: 2, 20: 1, 21: 2, 22: 2}
    assert np.flatnonzero(team.graph.copies).tolist() == list(copies)
    for node, count in copies.items():
        assert team.graph.copies[node] == count
    for agent, k in [(0, 0), (0, 1), (0, 6), (1, 3), (1, 6)]:
        assert team.graph.nodes[7 * agent + k].tolist() == MADE[agent, k].tolist()
    assert team.graph.nodes[14].tolist() == [1, 1, 2, 3]
    assert team.graph.nodes[15].tolist() == [1, 4, 5, 6]
    assert team.graph.nodes[17].tolist() == [3, 9, 10, -1]
    assert edges_of(team.graph) == TEAM_EDGES
    # In the source every agent has 15 nodes of its own; its self is the last of them.
    own = [0, 1, 6, 7, 8, 10, 11, 12, 13, 14]
    own += [15 + n for n in (3, 6, 7, 8, 10, 12, 13, 14)]
    assert np.flatnonzero(team.copies).tolist() == own
    assert team.left_out.tolist() == [0, 1]


def test_what_is_offered_but_not_seen_is_a_hyperedge_without_its_task():
    seen = seen_otherwise(sees_tasks=DRAWN.sees_tasks.at[0, 0].set(False))
    first = one(graphs_of(seen), 0)
    assert edges_of(first) == FIRST_EDGES - {(8, 0), (8, 1)}
    assert edges_of(team_of(seen, MADE).graph) == TEAM_EDGES - {(16, 0), (16, 1)}
    assert team_of(seen, MADE).graph.copies[16] == 1  # the other one's


def attention(layer: Attention, x, valid, edges) -> np.ndarray:
    """GATv2, node by node and edge by edge."""
    p = jax.tree.map(np.asarray, layer)
    _, heads, size = p.to.shape
    found = np.zeros((len(x), heads * size))
    for i in np.flatnonzero(valid):
        around = [j for j in np.flatnonzero(valid) if (j, i) in edges or i == j]
        for h in range(heads):
            target = x[i] @ p.to[:, h] + p.to_bias[h]
            sources = [x[j] @ p.source[:, h] + p.source_bias[h] for j in around]
            mixed = [target + s for s in sources]
            scores = [p.score[h] @ np.where(m > 0, m, 0.2 * m) for m in mixed]
            weights = np.exp(scores - np.max(scores))
            weights /= weights.sum()
            read = sum(w * s for w, s in zip(weights, sources, strict=True))
            found[i, size * h : size * (h + 1)] = read + p.bias[h]
    return found


def normed(norm: GraphNorm, x, valid) -> np.ndarray:
    a, g, b = (np.asarray(v) for v in (norm.mean_part, norm.scale, norm.shift))
    there = x[valid]
    offset = there - a * there.mean(axis=0)
    found = np.zeros_like(x)
    found[valid] = g * offset / np.sqrt((offset**2).mean(axis=0) + 1e-5) + b
    return found


def off_zero(tree):
    """With biases that are not 0 and scales that are not 1."""
    return jax.tree.map(lambda leaf: leaf + 0.1, tree)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("whose", ["agent", "team"])
def test_attention_is_gatv2_edge_by_edge(whose, seed):
    agent = (one(graphs_of(DRAWN), 0), FIRST_EDGES)
    team = (team_of(DRAWN, MADE).graph, TEAM_EDGES)
    graph, edges = agent if whose == "agent" else team
    layer = off_zero(create_layer(key=jax.random.key(seed)))
    valid = np.asarray(graph.copies) > 0
    random = np.random.default_rng(seed)
    x = random.normal(size=graph.nodes.shape).astype(np.float32) * valid[:, None]
    found = attend(layer, graph, jnp.asarray(x))
    np.testing.assert_allclose(found, attention(layer, x, valid, edges), atol=1e-5)


OTHERWISE = {
    "as drawn": DRAWN,
    "one sees less": seen_otherwise(sees_tasks=DRAWN.sees_tasks.at[1, 0].set(False)),
    "one is not there": seen_otherwise(roster=jnp.asarray([True, False])),
    "no task": seen_otherwise(
        tasks=jnp.zeros((0, 2)),
        exists=jnp.zeros(0, bool),
        sees_tasks=jnp.zeros((2, 0), bool),
        options=jnp.zeros((2, 0, 2), bool),
    ),
}


@pytest.mark.parametrize("how", OTHERWISE)
def test_nodes_that_are_shared_do_as_copies_of_each_agents_own_would(how):
    """The whole network, on the graph laid out as in the source."""
    seen = OTHERWISE[how]
    each = Layout.of_team(seen).each
    team = team_of(seen, 0.1 * MADE[:, :each])
    layout, graph = team.graph.layout, team.graph
    felt = edges_of(graph)
    create = jax.jit(partial(GraphNetwork.create, CONFIG, 4))
    network = off_zero(create(key=jax.random.key(5)))
    node = np.asarray(layout.copied(jnp.arange(len(graph.nodes)))).reshape(-1)
    owner = np.repeat([0, 1], len(node) // 2)
    valid, x = np.asarray(team.copies).reshape(-1), np.asarray(graph.nodes)[node]
    shared = node >= layout.tasks.start
    edges = {
        (j, i)
        for i in range(len(node))
        for j in range(len(node))
        if (node[j], node[i]) in felt and (owner[j] == owner[i] or not shared[j])
    }
    *layers, last = network.layers
    for layer, norm in zip(layers, network.norms, strict=True):
        x = np.maximum(normed(norm, attention(layer, x, valid, edges), valid), 0)
    expected = attention(last, x, valid, edges)
    found = np.asarray(jax.jit(lambda net, g: net(g))(network, graph))[node]
    np.testing.assert_allclose(found[valid], expected[valid], atol=1e-4)


@pytest.mark.parametrize("where", ["cpu", "gpu"])
def test_scores_and_their_slopes_wherever_they_are_computed(monkeypatch, where):
    monkeypatch.setattr(jax, "default_backend", lambda: where)
    keys = jax.random.split(jax.random.key(0), 4)
    shapes = ((4, 1, 2, 3), (1, 6, 2, 3), (2, 3))
    given = [jax.random.normal(k, s) for k, s in zip(keys, shapes, strict=False)]
    weights = jax.random.normal(keys[3], (2, 4, 6))

    def plain(to, source, score):
        mixed = to + source
        mixed = jnp.where(mixed > 0, mixed, 0.2 * mixed)
        return jnp.moveaxis(jnp.sum(mixed * score[None, None], axis=-1), -1, 0)

    def value_and_slopes(scores):
        def total(*arrays):
            return jnp.sum(weights * scores(*arrays))

        return jax.jit(jax.value_and_grad(total, argnums=(0, 1, 2)))(*given)

    found, expected = map(value_and_slopes, (pair_scores, plain))
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-4), found, expected)


def test_graph_norm_counts_nodes_as_often_as_there_are_copies():
    norm = GraphNorm(*jnp.asarray([[0.5, 1, 2], [2, 1, 3], [0.1, 0.2, 0.3]]))
    random, copies = np.random.default_rng(1), np.array([1, 0, 2, 1, 0, 3])
    nodes = random.normal(size=(6, 3)).astype(np.float32) * (copies > 0)[:, None]
    each = np.repeat(np.arange(6), copies)
    expected = np.zeros((6, 3))
    expected[each] = normed(norm, nodes[each], np.ones(len(each), bool))
    found = norm(jnp.asarray(nodes), jnp.asarray(copies, jnp.float32))
    np.testing.assert_allclose(found, expected, atol=1e-5)


@jax.jit
def sums(seen: Observation):
    """What the actors compare, in the order of actions."""
    return ACTORS.scores(ACTORS.hyperedges(seen))


@given(moments(away=True), st.randoms(use_true_random=False))
def test_spare_rows_and_the_order_of_tasks_change_nothing(seen, random):
    agents, tasks = seen.options.shape[:2]
    plain = np.asarray(sums(with_spare_rows(seen, *ROWS, seed=1)))
    more = np.asarray(sums(with_spare_rows(seen, *MORE_ROWS, seed=2)))
    legal = offered(seen)
    here = (slice(agents), slice(1 + tasks))
    np.testing.assert_allclose(plain[here][legal], more[here][legal], atol=1e-5)

    order = np.asarray(random.sample(range(tasks), tasks), int)
    moved = rearranged(seen, np.arange(agents), order)
    found = np.asarray(sums(with_spare_rows(moved, *ROWS, seed=3)))[here]
    expected = plain[here][:, [0, *(order + 1)]]
    legal = offered(moved)
    np.testing.assert_allclose(found[legal], expected[legal], atol=1e-5)


act = jax.jit(lambda key, seen: ACTORS.act(key, seen, None)[0])
explore = jax.jit(
    lambda key, seen, epsilon: Explorer(ACTORS, epsilon).explore(key, seen, None)[0]
)


@given(moments(away=True), st.integers(0, 9))
def test_actions_are_legal(seen, seed):
    padded = with_spare_rows(seen, *ROWS, seed=seed)
    key = jax.random.key(seed)
    everyone = np.arange(ROWS[0])
    legal = np.asarray(padded.action_mask)
    greedy = np.asarray(act(key, padded))
    assert legal[everyone, greedy].all()
    assert legal[everyone, explore(key, padded, jnp.asarray(0.7))].all()
    assert not greedy[~np.asarray(padded.present)].any()
    chosen = np.asarray(sums(padded))[everyone, greedy]
    best = np.where(legal, np.asarray(sums(padded)), -np.inf).max(axis=1)
    np.testing.assert_allclose(chosen, best, atol=1e-5)


def moment(agents: int, tasks: int) -> Observation:
    """A moment in which nobody may do anything."""
    return Observation(
        agents=jnp.ones((agents, 3)),
        roster=jnp.ones(agents, bool),
        present=jnp.ones(agents, bool),
        tasks=jnp.ones((tasks, 2)),
        exists=jnp.ones(tasks, bool),
        public=jnp.ones(3, bool),
        sees_agents=jnp.ones((agents, agents), bool),
        sees_tasks=jnp.ones((agents, tasks), bool),
        options=jnp.zeros((agents, tasks, 1), bool),
    )


@pytest.mark.parametrize("tasks", [0, 2])
def test_without_an_option_there_is_noop(tasks):
    seen = moment(2, tasks)
    assert act(jax.random.key(0), seen).tolist() == [0, 0]
    assert np.isfinite(np.asarray(sums(seen))[:, 0]).all()


def test_equal_hyperedges_are_taken_equally_often():
    seen = moment(1, 2)
    seen = Observation(**{**vars(seen), "options": jnp.ones((1, 2, 1), bool)})
    made = jnp.zeros((1, 3, 4)).at[0, 2].set(-1.0)
    keys = jax.random.split(jax.random.key(0), 2000)
    chosen = jax.jit(jax.vmap(lambda key: ACTORS.choose(key, seen, made)))(keys)
    share = np.bincount(np.asarray(chosen)[:, 0], minlength=3) / 2000
    np.testing.assert_allclose(share, [0, 0.5, 0.5], atol=0.05)


def test_exploring_takes_anything_legal_as_often_as_asked():
    seen = moment(1, 2)
    seen = Observation(**{**vars(seen), "options": jnp.ones((1, 2, 1), bool)})
    keys = jax.random.split(jax.random.key(0), 3000)

    def shares(epsilon: float):
        chosen = jax.vmap(explore, in_axes=(0, None, None))(
            keys, seen, jnp.asarray(epsilon)
        )
        return np.bincount(np.asarray(chosen)[:, 0], minlength=3) / 3000

    np.testing.assert_allclose(shares(1.0), [1 / 3] * 3, atol=0.04)
    np.testing.assert_allclose(shares(0.3), 0.7 * shares(0.0) + 0.3 / 3, atol=0.04)


def test_agents_beyond_the_trained_play_with_the_actors_again():
    seen = moment(5, 1)
    found = np.asarray(sums(seen))
    np.testing.assert_allclose(found[3:], found[:2], atol=1e-5)
    assert not np.allclose(found[0], found[1], atol=1e-3)


def critics(as_released: bool, features=DRAWN_FEATURES, agents: int = 2):
    networks = create_networks(features, agents, key=jax.random.key(3))
    return MohitoCritics(networks, as_released)


def drawn_actors() -> MohitoActors:
    return create_actors(DRAWN_FEATURES, 2, key=jax.random.key(4))


def teams(actors: MohitoActors):
    """The graphs of all moments for critics, as the actors make hyperedges."""

    def team(seen: Observation):
        return critic_graph(seen, actors.hyperedges(seen))

    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *MOMENTS)
    return jax.vmap(team)(stacked)


@cache
def batch_of_moments():
    return jax.jit(teams)(drawn_actors())


def values_of(networks: MohitoCritics, batch):
    return jax.jit(lambda batch: networks(batch, ACTIONS))(batch)


ACTIONS = jnp.asarray([[2, 4], [0, 0], [1, 4]])
WITHOUT_A_TASK = Observation(
    **{**vars(DRAWN), "exists": jnp.zeros(3, bool), "options": DRAWN.options & False}
)
MOMENTS = (DRAWN, WITHOUT_A_TASK, DRAWN)


def node_means(networks: MohitoCritics, batch) -> np.ndarray:
    """The mean output feature of all nodes, by the first critic."""
    network = jax.tree.map(lambda leaf: leaf[0], networks.networks)
    return np.asarray(read_nodes(network, batch.graph)).mean(axis=2)


read_nodes = jax.jit(jax.vmap(lambda network, graph: network(graph), (None, 0)))


def test_the_value_is_read_where_the_agents_act():
    networks, batch = critics(False), batch_of_moments()
    means = node_means(networks, batch)
    found = values_of(networks, batch)
    assert found.shape == (3, 2)
    # Task 0's second thing is node 1, task 1's second node 3, NOOP node 6.
    expected = [
        means[0, 1] + means[0, 7 + 3],
        means[1, 6] + means[1, 7 + 6],
        means[2, 0] + means[2, 7 + 3],
    ]
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-5)


# In all of these moments at most this is offered.
REACH = ((True, False, False), (False, True, False))


@pytest.mark.parametrize("as_released", [False, True])
def test_what_is_never_within_reach_needs_no_room(as_released):
    """Values, and what the actors learn from them, are as with room for everything."""
    actors, stacked = drawn_actors(), jax.tree.map(lambda *x: jnp.stack(x), *MOMENTS)
    made = jax.vmap(actors.hyperedges)(stacked)
    everything = critics(as_released)
    near = MohitoCritics(everything.networks, as_released, REACH)
    assert near.graphs(stacked, made).graph.nodes.shape[1] == 6 + 2 + 4 + 3
    chances = jax.nn.softmax(jax.random.normal(jax.random.key(8), (3, 2, 7)))
    chances = chances * jax.vmap(lambda seen: seen.action_mask)(stacked)

    @jax.jit
    @jax.value_and_grad
    def of_actions(made, networks):
        return networks(networks.graphs(stacked, made), ACTIONS).sum()

    @jax.jit
    @jax.value_and_grad
    def of_chances(made, networks):
        graphs = networks.graphs(stacked, made)
        own = jax.tree.map(lambda leaf: leaf[1], networks.networks)
        return (networks.expected(own, graphs, chances) ** 2).sum()

    for worth in (of_actions, of_chances):
        expected, found = worth(made, everything), worth(made, near)
        jax.tree.map(partial(np.testing.assert_allclose, atol=1e-5), found, expected)
        assert np.abs(found[1]).max() > 1e-3


def test_what_is_offered_beyond_the_reach_is_worth_no_number():
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *MOMENTS)
    made = jax.vmap(drawn_actors().hyperedges)(stacked)
    everything = critics(False)
    wrong = MohitoCritics(everything.networks, False, ((True, False, False),) * 2)
    values = wrong(wrong.graphs(stacked, made), ACTIONS)
    offered = np.asarray(stacked.options.any(axis=3))
    beyond = np.count_nonzero(offered & [False, True, True], axis=(1, 2)) > 0
    assert 0 < np.count_nonzero(beyond) < beyond.size
    np.testing.assert_array_equal(np.isnan(values), np.repeat(beyond[:, None], 2, 1))
    chances = jnp.full((*ACTIONS.shape, made.shape[2]), 1 / made.shape[2])
    own = jax.tree.map(lambda leaf: leaf[1], wrong.networks)
    expected = wrong.expected(own, wrong.graphs(stacked, made), chances)
    np.testing.assert_array_equal(np.isnan(expected), beyond)
    # Nor if nobody does anything that has room.
    nothing = MohitoCritics(everything.networks, False, ((False,) * 3,) * 2)
    found = nothing(nothing.graphs(stacked, made), ACTIONS)
    some = np.count_nonzero(offered, axis=(1, 2)) > 0
    np.testing.assert_array_equal(np.isnan(found), np.repeat(some[:, None], 2, 1))
    other = MohitoCritics(everything.networks, False, ((True, False, False),) * 3)
    with pytest.raises(
        PlatoError, match=r"within reach is of \(3, 3\) agents and tasks"
    ):
        other.graphs(stacked, made)


def test_rows_are_taken_with_the_gradient_of_taking_them():
    rows = jax.random.normal(jax.random.key(0), (4, 2, 3))
    which = np.array([3, 0, 3, 1, 3])
    slopes = jax.random.normal(jax.random.key(1), (5, 2, 3))
    np.testing.assert_array_equal(taken(rows, which), rows[which])
    found = jax.grad(lambda rows: jnp.sum(slopes * taken(rows, which)))(rows)
    expected = np.zeros((4, 2, 3))
    np.add.at(expected, which, np.asarray(slopes))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert taken(rows, np.arange(4)) is rows


def test_as_released_it_is_read_elsewhere():
    networks, batch = critics(True), batch_of_moments()
    # The source numbers every agent's own copies of nodes, of which it has 15.
    copied = jax.vmap(batch.graph.layout.copied)(node_means(networks, batch))
    valid = np.asarray(batch.copies).reshape(3, 30)
    end_to_end = np.asarray(copied).reshape(3, 30)[valid]
    chosen = [[1, 18], [6, 21], [0, 18]]
    expected = []
    for row, nodes in zip(valid, chosen, strict=True):
        # Their place among the nodes there are, the second one's later by the one
        # teammate that was left out of the first graph.
        first, second = (int(row[:node].sum()) for node in nodes)
        expected.append(end_to_end[first] + end_to_end[second + 1])
    found = values_of(networks, batch)
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-5)


def test_spare_rows_change_no_value():
    networks = critics(False, FEATURES, 3)
    seen = moment(2, 2)
    options = jnp.asarray([[[True], [False]], [[True], [True]]])
    seen = Observation(**{**vars(seen), "options": options})

    @jax.jit
    def value(seen: Observation, actions):
        team = critic_graph(seen, ACTORS.hyperedges(seen))
        return networks(jax.tree.map(lambda leaf: leaf[None], team), actions)

    plain = value(seen, jnp.asarray([[1, 2]]))
    padded = value(with_spare_rows(seen, 4, 5, seed=1), jnp.asarray([[1, 2, 0, 0]]))
    np.testing.assert_allclose(plain, padded, atol=1e-5)


def test_gradients_are_numbers():
    def total(parts):
        actors, networks = parts
        return networks(teams(actors), ACTIONS).sum()

    gradients = jax.jit(jax.grad(total))((drawn_actors(), critics(False)))
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(gradients)]
    assert all(np.isfinite(leaf).all() for leaf in leaves)
    # An actor learns through the features of its hyperedges.
    assert any(leaf.any() for leaf in jax.tree.leaves(gradients[0]))


def test_impossible_networks_are_refused():
    with pytest.raises(PlatoError, match=r"mohito\.layers must be at least 2"):
        MohitoConfig(layers=1)
