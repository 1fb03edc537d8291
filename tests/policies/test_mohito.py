"""MOHITO's graphs node by node, and its networks against loops in NumPy."""

from functools import cache, partial

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
    Hearers,
    Layout,
    critic_graph,
    observation_graphs,
)
from plato.policies.mohito import (
    Attention,
    GraphNorm,
    MohitoActors,
    MohitoCritics,
    pair_scores,
    per_agent,
    summed_scores,
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


def edges_of(graph: Graph) -> set[tuple[int, int]]:
    """(from, to) of every edge of one graph."""
    edges = {(int(j), int(i)) for i, j in np.argwhere(np.asarray(graph.edges))}
    assert edges <= {(source, to) for to, source in looked_at(graph)}
    return edges


def looked_at(graph: Graph) -> list[tuple[int, int]]:
    """(to, from) of the pairs of nodes that attention gives scores to."""
    pairs = [
        (to, source)
        for group in graph.hearers
        for to, own in zip(group.nodes, group.own, strict=True)
        for source in (*group.common, *own)
    ]
    assert len(pairs) == len(set(pairs)), "a node that is heard twice counts twice"
    assert {(to, to) for to, _ in pairs} <= set(pairs)
    return pairs


def one(graphs: Graph, index: int) -> Graph:
    return jax.tree.map(lambda leaf: leaf[index], graphs)


def test_the_graph_of_a_hand_drawn_moment():
    layout = Layout.of(DRAWN)
    # 0-6 hyperedges, 7-10 tasks, 11-13 verbs, 14-15 others, 16 self
    assert (layout.hyperedges.stop, layout.task_nodes.start) == (7, 7)
    assert (layout.verbs.start, layout.others.start, layout.myself) == (11, 14, 16)
    first, second = (one(graphs_of(DRAWN), agent) for agent in range(2))
    expected = {
        0: [5, 1, 1, 1],
        1: [5, 1, 1, 1],
        6: [5, 1, 1, 1],
        7: [3, 7, 8, -1],
        8: [3, 9, 10, -1],
        10: [3, -1, -1, -1],
        11: [4, 0, -1, -1],
        12: [4, 1, -1, -1],
        13: [4, -1, -1, -1],
        15: [2, 4, -1, 6],
        16: [1, 1, 2, 3],
    }
    assert np.flatnonzero(first.valid).tolist() == list(expected)
    for node, features in expected.items():
        assert first.nodes[node].tolist() == features, node
    assert edges_of(first) == {
        *((16, 0), (7, 0), (11, 0)),
        *((16, 1), (7, 1), (12, 1)),
        *((16, 6), (10, 6), (13, 6)),
        *((15, 16), (8, 16)),
    }
    assert np.flatnonzero(second.valid).tolist() == [3, 6, 7, 8, 10, 12, 13, 14, 16]
    assert second.nodes[14].tolist() == [2, 1, -1, 3]
    assert edges_of(second) == {
        *((16, 3), (8, 3), (12, 3)),
        *((16, 6), (10, 6), (13, 6)),
        *((14, 16), (7, 16)),
    }


def test_the_critics_graph_of_a_hand_drawn_moment():
    made = jnp.arange(2 * 7 * 4, dtype=jnp.float32).reshape(2, 7, 4)
    team = jax.jit(critic_graph)(DRAWN, graphs_of(DRAWN), made)
    # Without others an agent has 15 nodes; its self is the last of them.
    valid = [0, 1, 6, 7, 8, 10, 11, 12, 13, 14]
    valid += [15 + n for n in (3, 6, 7, 8, 10, 12, 13, 14)]
    assert np.flatnonzero(team.graph.valid).tolist() == valid
    hyperedges = [(0, 0), (0, 1), (0, 6), (1, 3), (1, 6)]
    for agent, k in hyperedges:
        node = 15 * agent + k
        assert team.graph.nodes[node].tolist() == made[agent, k].tolist()
    assert team.graph.nodes[14].tolist() == [1, 1, 2, 3]
    assert team.graph.nodes[29].tolist() == [1, 4, 5, 6]
    among = [15 * agent + k for agent, k in hyperedges]
    assert edges_of(team.graph) == {
        *((14, 0), (7, 0), (11, 0), (14, 1), (7, 1), (12, 1)),
        *((14, 6), (10, 6), (13, 6), (8, 14)),
        *((29, 18), (23, 18), (27, 18), (29, 21), (25, 21), (28, 21), (22, 29)),
        *((14, 29), (29, 14)),
        *((a, b) for a in among for b in among if a != b),
    }
    assert team.hyperedges.tolist() == [0, 15]
    assert team.left_out.tolist() == [0, 1]


def random_graph(seed: int, nodes: int = 7, size: int = 3) -> Graph:
    random = np.random.default_rng(seed)
    valid = random.random(nodes) < 0.7
    edges = (random.random((nodes, nodes)) < 0.4) & valid[:, None] & valid[None, :]
    # Nodes 1 and 4 only speak; 2 and 5 hear 0, 1, 2 and 5 and one more each.
    hearers = (
        Hearers((0, 3, 6), tuple(range(nodes)), ((), (), ())),
        Hearers((2, 5), (0, 1, 2, 5), ((3,), (6,))),
    )
    edges[[1, 4]] = False
    edges[2, [4, 6]] = edges[5, [3, 4]] = False
    features = random.normal(size=(nodes, size)).astype(np.float32)
    arrays = jnp.asarray(features), jnp.asarray(valid), jnp.asarray(edges)
    return Graph(*arrays, hearers)


create_layer = jax.jit(partial(Attention.create, 3, 4, 2))
attend = jax.jit(Attention.__call__)


@pytest.mark.parametrize("seed", range(5))
def test_attention_is_gatv2_edge_by_edge(seed):
    graph = random_graph(seed)
    layer = create_layer(key=jax.random.key(seed))
    layer = jax.tree.map(lambda x: x + 0.1, layer)  # biases that are not 0
    x, valid, edges = map(np.asarray, (graph.nodes, graph.valid, graph.edges))
    p = jax.tree.map(np.asarray, layer)
    expected = np.zeros((7, 8))
    for i in np.flatnonzero(valid):
        around = [j for j in np.flatnonzero(valid) if edges[i, j] or i == j]
        for h in range(2):
            target = x[i] @ p.to[:, h] + p.to_bias[h]
            sources = [x[j] @ p.source[:, h] + p.source_bias[h] for j in around]
            mixed = [target + s for s in sources]
            scores = [p.score[h] @ np.where(m > 0, m, 0.2 * m) for m in mixed]
            weights = np.exp(scores) / np.exp(scores).sum()
            read = sum(w * s for w, s in zip(weights, sources, strict=True))
            expected[i, 4 * h : 4 * h + 4] = read + p.bias[h]
    found = attend(layer, graph, graph.nodes)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_scores_are_the_same_kept_or_formed_anew():
    keys = jax.random.split(jax.random.key(0), 4)
    shapes = ((4, 2, 3), (6, 2, 3), (2, 3))
    given = [jax.random.normal(k, s) for k, s in zip(keys, shapes, strict=False)]
    weights = jax.random.normal(keys[3], (2, 4, 6))

    def value_and_slopes(scores):
        def total(*arrays):
            return jnp.sum(weights * scores(*arrays))

        return jax.jit(jax.value_and_grad(total, argnums=(0, 1, 2)))(*given)

    kept, anew = map(value_and_slopes, (pair_scores, summed_scores))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), kept, anew)


def test_graph_norm_counts_the_nodes_there_are():
    graph = random_graph(1)
    norm = GraphNorm(*jnp.asarray([[0.5, 1, 2], [2, 1, 3], [0.1, 0.2, 0.3]]))
    x = np.asarray(graph.nodes)[np.asarray(graph.valid)]
    a, g, b = (np.asarray(v) for v in (norm.mean_part, norm.scale, norm.shift))
    offset = x - a * x.mean(axis=0)
    expected = g * offset / np.sqrt((offset**2).mean(axis=0) + 1e-5) + b
    found = np.asarray(norm(graph.nodes, graph.valid))
    np.testing.assert_allclose(found[np.asarray(graph.valid)], expected, atol=1e-5)
    assert not found[~np.asarray(graph.valid)].any()


@jax.jit
def sums(seen: Observation):
    """What the actors compare, in the order of actions."""
    made = ACTORS.hyperedges(seen, observation_graphs(seen))
    return jax.vmap(Layout.of(seen).by_action)(made.sum(axis=2))


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
    layout = Layout.of(seen)
    seen = Observation(**{**vars(seen), "options": jnp.ones((1, 2, 1), bool)})
    made = jnp.zeros((1, layout.hyperedges.stop, 4)).at[0, 2].set(-1.0)
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
        graphs = observation_graphs(seen)
        return critic_graph(seen, graphs, actors.hyperedges(seen, graphs))

    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *MOMENTS)
    return jax.vmap(team)(stacked)


@cache
def batch_of_moments():
    return jax.jit(teams)(drawn_actors())


def values_of(networks: MohitoCritics, batch):
    return jax.jit(lambda batch: networks(batch, Layout.of(DRAWN), ACTIONS))(batch)


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
        means[0, 1] + means[0, 18],
        means[1, 6] + means[1, 21],
        means[2, 0] + means[2, 18],
    ]
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-5)


def test_as_released_it_is_read_elsewhere():
    networks, batch = critics(True), batch_of_moments()
    means, valid = node_means(networks, batch), np.asarray(batch.graph.valid)
    end_to_end = means[valid]
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
        graphs = observation_graphs(seen)
        team = critic_graph(seen, graphs, ACTORS.hyperedges(seen, graphs))
        batch = jax.tree.map(lambda leaf: leaf[None], team)
        return networks(batch, Layout.of(seen), actions)

    plain = value(seen, jnp.asarray([[1, 2]]))
    padded = value(with_spare_rows(seen, 4, 5, seed=1), jnp.asarray([[1, 2, 0, 0]]))
    np.testing.assert_allclose(plain, padded, atol=1e-5)


def test_gradients_are_numbers():
    def total(parts):
        actors, networks = parts
        return networks(teams(actors), Layout.of(DRAWN), ACTIONS).sum()

    gradients = jax.jit(jax.grad(total))((drawn_actors(), critics(False)))
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(gradients)]
    assert all(np.isfinite(leaf).all() for leaf in leaves)
    # An actor learns through the features of its hyperedges.
    assert any(leaf.any() for leaf in jax.tree.leaves(gradients[0]))


def test_impossible_networks_are_refused():
    with pytest.raises(PlatoError, match=r"mohito\.layers must be at least 2"):
        MohitoConfig(layers=1)
