"""MOHITO's networks: attention over hypergraphs, an actor and a critic per agent.

Task-open, as its graphs are; not agent-open, as every agent has weights of its own:
with more agents than were trained, agent n plays with the actor of agent n modulo
their number. How they learn is not here.
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from plato.game import Features, Observation, WithinReach, how_many
from plato.masking import chosen, joint_softmax, pick
from plato.policies.hypergraph import (
    HYPEREDGE,
    CriticGraph,
    Graph,
    Kinds,
    Layout,
    by_action,
    critic_graph,
    graph_features,
    observation_graphs,
)
from plato.policies.mohito_config import MohitoConfig
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
        layout = graph.layout
        to = _mapped(nodes[layout.hearing], self.to, self.to_bias)
        source = layout.split(_mapped(nodes, self.source, self.source_bias))
        of_hyperedges, of_selves = jnp.split(to, [layout.hyperedges.stop])
        read = [
            self._hyperedges_hear(graph, of_hyperedges, source),
            self._selves_hear(graph, of_selves, source),
        ]
        speaking = source.tasks, source.others, source.verbs
        heard = jnp.concatenate([*read, *speaking]) + self.bias[None]
        there = graph.copies[:, None] > 0
        return jnp.where(there, heard.reshape(nodes.shape[0], -1), 0.0)

    def _hyperedges_hear(
        self, graph: Graph, to: Float[Array, "hyperedge head out"], source: Kinds
    ) -> Float[Array, "hyperedge head out"]:
        """Of their parts, and of each other or of themselves."""
        joined, own, there = graph.layout.joined, source.hyperedges, graph.hyperedges
        near = graph.layout.parts(source)
        masks = [mask[None, :, None] for mask in (graph.about, there, there)]
        if not joined:
            near.append(own)
            masks.append(there[None, :, None])
        scores = [pair_scores(to, one, self.score)[..., None] for one in near]
        if joined:
            scores.append(pair_scores(to[:, None], own[None], self.score))
            masks.append((there[:, None] & there[None, :])[None])
        weights = joint_softmax(scores, masks)
        read = jnp.zeros_like(own)
        for part, one in zip(weights[: len(near)], near, strict=True):
            read += jnp.moveaxis(part, 0, 1) * one
        if joined:
            read += jnp.einsum("hij,jho->iho", weights[-1], own)
        return read

    def _selves_hear(
        self, graph: Graph, to: Float[Array, "self head out"], source: Kinds
    ) -> Float[Array, "self head out"]:
        heard = jnp.concatenate([source.selves, source.tasks, source.others])
        scores = pair_scores(to[:, None], heard[None], self.score)
        mask = jnp.broadcast_to(graph.selves_hear[None], scores.shape)
        (weights,) = joint_softmax([scores], [mask])
        return jnp.einsum("hij,jho->iho", weights, heard)


def _mapped(
    nodes: Float[Array, "node in"],
    weight: Float[Array, "in head out"],
    bias: Float[Array, "head out"],
) -> Float[Array, "node head out"]:
    return jnp.einsum("ni,iho->nho", nodes, weight) + bias[None]


@jax.custom_vjp
def pair_scores(
    to: Float[Array, "*to head out"],
    source: Float[Array, "*source head out"],
    score: Float[Array, "head out"],
) -> Float[Array, "head *pair"]:
    """What nodes find in others. Axes in front are broadcast.

    The mixtures of all pairs are by far the largest array: none is kept, a gradient
    forms them anew. A CPU is fast at products of it; an accelerator would be busy
    moving it, and what leaks is linear, so that there only what is positive is looked
    at pair by pair.
    """
    if jax.default_backend() == "cpu":
        mixed = jax.nn.leaky_relu(to + source, ATTENTION_SLOPE)
        return jnp.einsum("...ho,ho->h...", mixed, score)
    score = score.reshape(*[1] * (to.ndim - 2), *score.shape)
    positive = jax.nn.relu(to + source)
    sums = jnp.sum(positive * (1 - ATTENTION_SLOPE) * score, axis=-1)
    leaks = [ATTENTION_SLOPE * jnp.sum(ends * score, axis=-1) for ends in (to, source)]
    return jnp.moveaxis(sums + leaks[0] + leaks[1], -1, 0)


def _scores_forward(to: Array, source: Array, score: Array) -> tuple[Array, Any]:
    return pair_scores(to, source, score), (to, source, score)


def _scores_backward(ends: Any, slope: Float[Array, "head *pair"]) -> tuple[Array, ...]:
    to, source, score = ends
    front = tuple(range(to.ndim - 2))
    each = jnp.moveaxis(slope, 0, -1)[..., None]
    mixed, score = to + source, jnp.expand_dims(score, front)
    down = each * jnp.where(mixed > 0, score, ATTENTION_SLOPE * score)

    def summed(end: Array) -> Array:
        """Over the axes along which it was broadcast."""
        axes = tuple(i for i in front if end.shape[i] < down.shape[i])
        return jnp.sum(down, axis=axes, keepdims=True)

    leaked = jax.nn.leaky_relu(mixed, ATTENTION_SLOPE)
    return summed(to), summed(source), jnp.sum(each * leaked, axis=front)


pair_scores.defvjp(_scores_forward, _scores_backward)


class GraphNorm(eqx.Module):
    """Each channel less a learned part of its mean, over its spread in the graph."""

    mean_part: Float[Array, " size"]
    scale: Float[Array, " size"]
    shift: Float[Array, " size"]

    @classmethod
    def create(cls, size: int) -> "GraphNorm":
        return cls(jnp.ones(size), jnp.ones(size), jnp.zeros(size))

    def __call__(
        self, nodes: Float[Array, "node size"], copies: Float[Array, " node"]
    ) -> Float[Array, "node size"]:
        """Of nodes that count as often as there are copies of them."""
        count, times = jnp.maximum(jnp.sum(copies), 1), copies[:, None]
        there = times > 0
        mean = jnp.sum(times * nodes, axis=0) / count
        offset = jnp.where(there, nodes - (self.mean_part * mean)[None, :], 0.0)
        spread = jnp.sum(times * offset**2, axis=0) / count
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
            nodes = norm(layer(graph, nodes), graph.copies)
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
        hyperedges = self.hyperedges(observation)
        return self.choose(key, observation, hyperedges), None

    def hyperedges(self, seen: Observation) -> Float[Array, "agent hyperedge feat"]:
        """What each agent's network makes of its hyperedges, still of that type."""
        graphs, rows = observation_graphs(seen), Layout.of_agent(seen).hyperedges

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
        sums, legal = self.scores(hyperedges), seen.action_mask
        best = jnp.max(jnp.where(legal, sums, -jnp.inf), axis=1, keepdims=True)
        draws = jax.random.bits(key, sums.shape[:1], jnp.uint32)
        return pick(legal & (sums == best), draws)

    def scores(
        self, hyperedges: Float[Array, "agent hyperedge feat"]
    ) -> Float[Array, "agent choice"]:
        """The sums of features, in the order of actions."""
        return by_action(hyperedges.sum(axis=2))

    def _for(self, agents: int) -> GraphNetwork:
        """A network for each of so many rows of agents."""
        which = jnp.arange(agents) % how_many(self.networks)
        return jax.tree.map(lambda leaf: leaf[which], self.networks)


class MohitoCritics(eqx.Module):
    """Each agent's value of what the whole team does; used in training only."""

    networks: GraphNetwork
    """One for each agent, along a first axis: see `per_agent`."""
    as_released: bool = eqx.field(static=True)
    reach: WithinReach | None = eqx.field(static=True, default=None)
    """What the agents of its games may ever be offered, if not everything."""

    def graphs(
        self, seen: Observation, hyperedges: Float[Array, "batch agent each feat"]
    ) -> CriticGraph:
        """The team's of many moments, with hyperedges as the actors make them."""
        return jax.vmap(partial(critic_graph, reach=self.reach))(seen, hyperedges)

    def __call__(
        self, graphs: CriticGraph, actions: Int[Array, "batch agent"]
    ) -> Float[Array, "batch owner"]:
        """Q of joint actions by the critic of every agent."""

        def of_owner(network: GraphNetwork) -> Float[Array, " batch"]:
            return self.value(network, graphs, actions)

        return eqx.filter_vmap(of_owner, out_axes=1)(self.networks)

    def value(
        self,
        network: GraphNetwork,
        graphs: CriticGraph,
        actions: Int[Array, "batch agent"],
    ) -> Float[Array, " batch"]:
        """Q of joint actions by one of the networks.

        The sum over agents of the mean output feature at the node of what each does.
        """
        means = jax.vmap(network)(graphs.graph).mean(axis=2)
        if self.as_released:
            read = _read_as_released(graphs, means, actions)
        else:
            read = chosen(_of_hyperedges(graphs, means), actions)
        return jnp.sum(read, axis=1, where=graphs.members) + _nothing(graphs)

    def expected(
        self,
        network: GraphNetwork,
        graphs: CriticGraph,
        chances: Float[Array, "batch agent choice"],
    ) -> Float[Array, " batch"]:
        """The mean of such values, if every agent draws what it does."""
        means = jax.vmap(network)(graphs.graph).mean(axis=2)
        each = jnp.sum(chances * _of_hyperedges(graphs, means), axis=2)
        return jnp.sum(each, axis=1, where=graphs.members) + _nothing(graphs)


def _nothing(graphs: CriticGraph) -> Float[Array, " b"]:
    """0; no number, rather than a wrong one, where something that is offered has no
    room. Added, so that a loss has no gradient there, either."""
    return jnp.where(graphs.lost, jnp.nan, 0.0)


def _of_hyperedges(
    graphs: CriticGraph, means: Float[Array, "b node"]
) -> Float[Array, "b agent choice"]:
    return jax.vmap(graphs.graph.layout.of_hyperedges)(means)


def _read_as_released(
    graphs: CriticGraph, means: Float[Array, "b node"], actions: Int[Array, "b agent"]
) -> Float[Array, "b agent"]:
    """The numbers where the released code looks for them.

    Every agent has its own copies of nodes there. It numbers nodes before teammates are
    left out, and looks the numbers up in the whole batch laid end to end. A number
    beyond its end, where that code would stop, reads the last node.
    """
    layout, there = graphs.graph.layout, graphs.copies
    _, agents, copies = there.shape
    node = layout.hyperedge_of(actions) + copies * jnp.arange(agents)[None, :]
    place = jnp.cumsum(there.reshape(-1, agents * copies), axis=1) - 1
    numbers = jnp.take_along_axis(place, node, axis=1) + graphs.left_out
    # The n-th node of the batch is the first with n + 1 of them up to it.
    so_far = jnp.cumsum(there.reshape(-1))
    found = jnp.searchsorted(so_far, jnp.minimum(numbers + 1, so_far[-1]))
    return jax.vmap(layout.copied)(means).reshape(-1)[found]
