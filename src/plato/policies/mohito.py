"""MOHITO's networks: attention over hypergraphs, an actor and a critic per agent.

Task-open, as its graphs are; not agent-open, as every agent has weights of its own:
with more agents than were trained, agent n plays with the actor of agent n modulo
their number. How they learn is not here.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from plato.game import Features, Observation, how_many
from plato.masking import masked_softmax, pick
from plato.policies.hypergraph import (
    HYPEREDGE,
    CriticGraph,
    Graph,
    Hearers,
    Layout,
    graph_features,
    observation_graphs,
)
from plato.policies.mohito_config import MohitoConfig
from plato.policies.picking import picked
from plato.policies.policy import Policy

ATTENTION_SLOPE = 0.2
ACTIVATION_SLOPE = {"relu": 0.0, "leaky_relu": 0.1}
NORM_EPSILON = 1e-5


class Attention(eqx.Module):
    """A GATv2 layer: every node attends to those that point at it, and to itself."""

    to: Float[Array, "in head out"]
    """Of the node that attends, and of the nodes attended to, with their biases."""
    to_bias: Float[Array, "head out"]
    source: Float[Array, "in head out"]
    source_bias: Float[Array, "head out"]
    score: Float[Array, "head out"]
    bias: Float[Array, "head out"]

    @classmethod
    def create(
        cls, size: int, out: int, heads: int, *, key: PRNGKeyArray
    ) -> "Attention":
        """Glorot weights and, as PyG has them, uniform biases of the linear maps."""
        k_to, k_to_bias, k_source, k_source_bias, k_score = jax.random.split(key, 5)

        def within(key: PRNGKeyArray, shape: tuple[int, ...], limit: float) -> Array:
            return jax.random.uniform(key, shape, minval=-limit, maxval=limit)

        glorot = (6 / (size + heads * out)) ** 0.5
        return cls(
            to=within(k_to, (size, heads, out), glorot),
            to_bias=within(k_to_bias, (heads, out), size**-0.5),
            source=within(k_source, (size, heads, out), glorot),
            source_bias=within(k_source_bias, (heads, out), size**-0.5),
            score=within(k_score, (heads, out), (6 / (heads + out)) ** 0.5),
            bias=jnp.zeros((heads, out)),
        )

    def __call__(
        self, graph: Graph, nodes: Float[Array, "node in"]
    ) -> Float[Array, "node size"]:
        """New features, the heads' side by side; 0 where there is no node.

        What no edge leads to attends to itself alone; scores are for the others.
        """
        source = jnp.einsum("ni,iho->nho", nodes, self.source) + self.source_bias[None]
        read = [self._read(graph, nodes, source, group) for group in graph.hearers]
        # A row of what was read where there is one, else the node's own.
        count = nodes.shape[0]
        rows = [row for group in graph.hearers for row in group.nodes]
        place = np.arange(len(rows), len(rows) + count)
        place[rows] = np.arange(len(rows))
        heard = picked(jnp.concatenate([*read, source]), place) + self.bias[None]
        return jnp.where(graph.valid[:, None], heard.reshape(count, -1), 0.0)

    def _read(
        self,
        graph: Graph,
        nodes: Float[Array, "node in"],
        source: Float[Array, "node head out"],
        group: Hearers,
    ) -> Float[Array, "row head out"]:
        """What some of the nodes hear, each by what it finds in the others."""
        rows, common = np.asarray(group.nodes, int), np.asarray(group.common, int)
        own = np.asarray(group.own, int).reshape(len(rows), -1)
        to = jnp.einsum("ni,iho->nho", picked(nodes, rows), self.to)
        to += self.to_bias[None]
        shared, near = picked(source, common), picked(source, own)
        scores = [pair_scores(to, shared, self.score), own_scores(to, near, self.score)]
        heard = np.hstack([np.broadcast_to(common, (len(rows), len(common))), own])
        there = graph.edges[rows[:, None], heard] | (heard == rows[:, None])
        mask = there & graph.valid[rows][:, None] & graph.valid[heard]
        weights = jnp.concatenate(scores, axis=2)
        weights = masked_softmax(weights, jnp.broadcast_to(mask[None], weights.shape))
        of_common, of_own = jnp.split(weights, [len(common)], axis=2)
        read = jnp.einsum("hij,jho->iho", of_common, shared)
        return read + jnp.einsum("hik,ikho->iho", of_own, near)


def own_scores(
    to: Float[Array, "row head out"],
    near: Float[Array, "row own head out"],
    score: Float[Array, "head out"],
) -> Float[Array, "head row own"]:
    """What each row finds in the nodes that it has to itself."""
    mixed = jax.nn.leaky_relu(to[:, None] + near, ATTENTION_SLOPE)
    return jnp.einsum("ikho,ho->hik", mixed, score)


def pair_scores(
    to: Float[Array, "row head out"],
    source: Float[Array, "node head out"],
    score: Float[Array, "head out"],
) -> Float[Array, "head row node"]:
    """What each row finds in each node, in the way that is fast where it will run.

    The mixtures of all pairs are by far the largest array. A CPU is fast at products of
    it; an accelerator would be busy moving it.
    """
    if jax.default_backend() == "cpu":
        mixed = jax.nn.leaky_relu(to[:, None] + source[None, :], ATTENTION_SLOPE)
        return jnp.einsum("ijho,ho->hij", mixed, score)
    return summed_scores(to, source, score)


@jax.checkpoint
def summed_scores(
    to: Float[Array, "row head out"],
    source: Float[Array, "node head out"],
    score: Float[Array, "head out"],
) -> Float[Array, "head row node"]:
    """The same as sums of mixtures that are never kept: a gradient forms them anew.

    What leaks is linear, so that only what is positive is looked at pair by pair.
    """
    weighed = (1 - ATTENTION_SLOPE) * score
    positive = jax.nn.relu(to[:, None] + source[None, :])
    sums = jnp.sum(positive * weighed[None, None], axis=-1)
    leak_to, leak_source = (
        ATTENTION_SLOPE * jnp.sum(ends * score[None], axis=-1) for ends in (to, source)
    )
    return jnp.moveaxis(sums + leak_to[:, None] + leak_source[None, :], 2, 0)


class GraphNorm(eqx.Module):
    """Each channel less a learned part of its mean, over its spread in the graph."""

    mean_part: Float[Array, " size"]
    scale: Float[Array, " size"]
    shift: Float[Array, " size"]

    @classmethod
    def create(cls, size: int) -> "GraphNorm":
        return cls(jnp.ones(size), jnp.ones(size), jnp.zeros(size))

    def __call__(
        self, nodes: Float[Array, "node size"], valid: Bool[Array, " node"]
    ) -> Float[Array, "node size"]:
        there = valid[:, None]
        count = jnp.maximum(jnp.sum(valid), 1)
        mean = jnp.sum(jnp.where(there, nodes, 0.0), axis=0) / count
        offset = jnp.where(there, nodes - (self.mean_part * mean)[None, :], 0.0)
        spread = jnp.sum(offset**2, axis=0) / count
        scale = self.scale * jax.lax.rsqrt(spread + NORM_EPSILON)
        return jnp.where(there, offset * scale[None, :] + self.shift[None, :], 0.0)


class GraphNetwork(eqx.Module):
    """Attention layers with norms and activations between them; as wide out as in."""

    layers: list[Attention]
    norms: list[GraphNorm]
    slope: float = eqx.field(static=True)

    @classmethod
    def create(
        cls, config: MohitoConfig, size: int, *, key: PRNGKeyArray
    ) -> "GraphNetwork":
        *k_layers, k_last = jax.random.split(key, config.layers)
        between = config.hidden * config.heads
        sizes = [size, *[between] * (config.layers - 2)]
        layers = [
            Attention.create(into, config.hidden, config.heads, key=k)
            for into, k in zip(sizes, k_layers, strict=True)
        ]
        return cls(
            layers=[*layers, Attention.create(between, size, 1, key=k_last)],
            norms=[GraphNorm.create(between) for _ in layers],
            slope=ACTIVATION_SLOPE[config.activation],
        )

    def __call__(self, graph: Graph) -> Float[Array, "node feat"]:
        nodes = graph.nodes
        *layers, last = self.layers
        for layer, norm in zip(layers, self.norms, strict=True):
            nodes = norm(layer(graph, nodes), graph.valid)
            nodes = jax.nn.leaky_relu(nodes, self.slope)
        return last(graph, nodes)


def per_agent(
    config: MohitoConfig, features: Features, agents: int, *, key: PRNGKeyArray
) -> GraphNetwork:
    """A network for each agent, stacked along a first axis."""
    size = graph_features(features.agent, features.task)

    def create(key: PRNGKeyArray) -> GraphNetwork:
        return GraphNetwork.create(config, size, key=key)

    return eqx.filter_vmap(create)(jax.random.split(key, agents))


class MohitoActors(Policy[None]):
    """Every agent takes the hyperedge whose features, as its actor sees it, sum up to
    most; ties are broken uniformly at random."""

    networks: GraphNetwork
    """One for each agent, along a first axis."""

    @classmethod
    def create(
        cls,
        config: MohitoConfig,
        features: Features,
        agents: int,
        *,
        key: PRNGKeyArray,
    ) -> "MohitoActors":
        return cls(per_agent(config, features, agents, key=key))

    def start(self, agents: int) -> None:
        del agents

    def act(
        self, key: PRNGKeyArray, observation: Observation, memory: None
    ) -> tuple[Int[Array, " agent"], None]:
        del memory
        hyperedges = self.hyperedges(observation, observation_graphs(observation))
        return self.choose(key, observation, hyperedges), None

    def hyperedges(
        self, seen: Observation, graphs: Graph
    ) -> Float[Array, "agent hyperedge feat"]:
        """What each agent's network makes of its hyperedges, still of that type."""
        rows = Layout.of(seen).hyperedges

        def of_agent(network: GraphNetwork, graph: Graph):
            return network(graph)[rows].at[:, 0].set(HYPEREDGE)

        return eqx.filter_vmap(of_agent)(self._for(seen.agents.shape[0]), graphs)

    def choose(
        self,
        key: PRNGKeyArray,
        seen: Observation,
        hyperedges: Float[Array, "agent hyperedge feat"],
    ) -> Int[Array, " agent"]:
        """The legal action of each agent whose hyperedge has the greatest sum."""
        sums, legal = self.scores(seen, hyperedges), seen.action_mask
        best = jnp.max(jnp.where(legal, sums, -jnp.inf), axis=1, keepdims=True)
        draws = jax.random.bits(key, sums.shape[:1], jnp.uint32)
        return pick(legal & (sums == best), draws)

    def scores(
        self, seen: Observation, hyperedges: Float[Array, "agent hyperedge feat"]
    ) -> Float[Array, "agent choice"]:
        """The sums of features, in the order of actions."""
        return jax.vmap(Layout.of(seen).by_action)(hyperedges.sum(axis=2))

    def _for(self, agents: int) -> GraphNetwork:
        """A network for each of so many rows of agents."""
        which = jnp.arange(agents) % how_many(self.networks)
        return jax.tree.map(lambda leaf: leaf[which], self.networks)


class MohitoCritics(eqx.Module):
    """Each agent's value of what the whole team does; used in training only."""

    networks: GraphNetwork
    """One for each agent, along a first axis: see `per_agent`."""
    as_released: bool = eqx.field(static=True)

    def __call__(
        self,
        graphs: CriticGraph,
        layout: Layout,
        actions: Int[Array, "batch agent"],
    ) -> Float[Array, "batch owner"]:
        """Q of joint actions by the critic of every agent."""

        def of_owner(network: GraphNetwork) -> Float[Array, " batch"]:
            return self.value(network, graphs, layout, actions)

        return eqx.filter_vmap(of_owner, out_axes=1)(self.networks)

    def value(
        self,
        network: GraphNetwork,
        graphs: CriticGraph,
        layout: Layout,
        actions: Int[Array, "batch agent"],
    ) -> Float[Array, " batch"]:
        """Q of joint actions by one of the networks.

        The sum over agents of the mean output feature at the node of what each does.
        """
        nodes = graphs.hyperedges + layout.hyperedge_of(actions)
        read = _read_as_released if self.as_released else _read
        means = jax.vmap(network)(graphs.graph).mean(axis=2)
        return jnp.sum(read(graphs, means, nodes), axis=1, where=graphs.members)

    def expected(
        self,
        network: GraphNetwork,
        graphs: CriticGraph,
        layout: Layout,
        chances: Float[Array, "batch agent choice"],
    ) -> Float[Array, " batch"]:
        """The mean of such values, if every agent draws what it does."""
        places = layout.hyperedge_of(jnp.arange(chances.shape[2]))
        nodes = graphs.hyperedges[:, :, None] + places[None, None]
        means = jax.vmap(network)(graphs.graph).mean(axis=2)
        each = jnp.take_along_axis(means[:, None], nodes, axis=2)
        mean = jnp.sum(chances * each, axis=2)
        return jnp.sum(mean, axis=1, where=graphs.members)


def _read(
    graphs: CriticGraph, means: Float[Array, "batch node"], nodes: Int[Array, "b agent"]
) -> Float[Array, "b agent"]:
    """Each agent's number at its node of its graph."""
    del graphs
    return jnp.take_along_axis(means, nodes, axis=1)


def _read_as_released(
    graphs: CriticGraph, means: Float[Array, "batch node"], nodes: Int[Array, "b agent"]
) -> Float[Array, "b agent"]:
    """The numbers where the released code looks for them.

    It numbers nodes before teammates are left out, and looks the numbers up in the
    whole batch laid end to end. A number beyond its end, where that code would stop,
    reads the last node.
    """
    valid = graphs.graph.valid
    place = jnp.cumsum(valid, axis=1) - 1
    numbers = jnp.take_along_axis(place, nodes, axis=1) + graphs.left_out
    # The n-th node of the batch is the first with n + 1 of them up to it.
    so_far = jnp.cumsum(valid.reshape(-1))
    found = jnp.searchsorted(so_far, jnp.minimum(numbers + 1, so_far[-1]))
    return means.reshape(-1)[found]
