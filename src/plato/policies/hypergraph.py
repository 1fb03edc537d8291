"""MOHITO's graphs: what an agent observes, and the whole team's for the critics.

A hypergraph of (agent, task, action) triples, flattened: every hyperedge, which is one
thing that the agent may do, becomes a node of its own that its parts point at. Arrays
have room for all tasks and agents; `valid` says which nodes there are, and no edge
touches another.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from plato.game import NOOP, Observation

SELF, OTHER, TASK, VERB, HYPEREDGE = 1.0, 2.0, 3.0, 4.0, 5.0
"""The types of nodes, their feature 0."""
BLANK = -1.0
"""Fills features that a node does not have, or that an agent may not see."""
NOOP_VERB = -1.0


class Layout(NamedTuple):
    """Where the nodes of an observation graph are, in the order of the source.

    Hyperedges are numbered as actions are, but for NOOP, which comes last; so do the
    null task, which NOOP is about, and its verb.
    """

    agents: int
    tasks: int
    actions: int

    @classmethod
    def of(cls, seen: Observation) -> "Layout":
        """That of a moment, or of any number of them, stacked."""
        return cls(*seen.options.shape[-3:])

    @property
    def hyperedges(self) -> slice:
        return slice(0, self.tasks * self.actions + 1)

    @property
    def task_nodes(self) -> slice:
        first = self.hyperedges.stop
        return slice(first, first + self.tasks + 1)

    @property
    def verbs(self) -> slice:
        first = self.task_nodes.stop
        return slice(first, first + self.actions + 1)

    @property
    def others(self) -> slice:
        first = self.verbs.stop
        return slice(first, first + self.agents)

    @property
    def myself(self) -> int:
        return self.others.stop

    @property
    def nodes(self) -> int:
        return self.myself + 1

    @property
    def hearers(self) -> tuple["Hearers", ...]:
        """Of an observation graph: its hyperedges and its self."""
        hyperedges, myself = tuple(range(self.hyperedges.stop)), (self.myself,)
        parts = tuple((node, *self.parts_of(node)) for node in hyperedges)
        spoken_to = range(self.task_nodes.start, self.task_nodes.stop)
        others = range(self.others.start, self.others.stop)
        return (
            Hearers(hyperedges, (), parts),
            Hearers(myself, (*spoken_to, *others, *myself), ((),)),
        )

    @property
    def critic_hearers(self) -> tuple["Hearers", ...]:
        """Of the critics' graph: hyperedges hear their kind, and so do selves."""
        first = tuple(self.critic_nodes * agent for agent in range(self.agents))
        last = self.critic_nodes - 1
        of_one = range(self.hyperedges.stop)
        parts = [(*self.parts_of(node)[:2], last) for node in of_one]
        tasks = range(self.task_nodes.start, self.task_nodes.stop)
        hyperedges = tuple(at + node for at in first for node in of_one)
        selves = tuple(at + last for at in first)
        made_of = [[at + node for node in own] for at in first for own in parts]
        known = [[at + node for node in tasks] for at in first]
        return (
            Hearers(hyperedges, hyperedges, tuple(map(tuple, made_of))),
            Hearers(selves, selves, tuple(map(tuple, known))),
        )

    def parts_of(self, hyperedge: int) -> tuple[int, int, int]:
        """The task, the verb and the agent that a hyperedge is made of."""
        task, verb = divmod(hyperedge, self.actions)
        if hyperedge == self.hyperedges.stop - 1:
            task, verb = self.tasks, self.actions
        return self.task_nodes.start + task, self.verbs.start + verb, self.myself

    @property
    def critic_nodes(self) -> int:
        """Nodes that an agent's graph has in that of the critics: all but `others`."""
        return self.nodes - self.agents

    def hyperedge_of(self, action: Int[Array, " *row"]) -> Int[Array, " *row"]:
        """The node of an action."""
        return jnp.where(action == NOOP, self.hyperedges.stop - 1, action - 1)

    def by_action(self, hyperedges: Float[Array, " hyperedge"]) -> Float[Array, " c"]:
        """A number for each hyperedge, in the order of actions: NOOP first."""
        return jnp.roll(hyperedges, 1)


class Hearers(NamedTuple):
    """Nodes that edges may lead to, and the nodes that these may come from.

    All others only speak. Most pairs of nodes can have no edge, whatever there is, and
    attention does not look at them.
    """

    nodes: tuple[int, ...]
    common: tuple[int, ...]
    """What each of them may hear; this or `own` has the node itself."""
    own: tuple[tuple[int, ...], ...]
    """What only that one may hear, equally many for each."""


class Graph(eqx.Module):
    """A directed graph with features; several, with axes in front."""

    nodes: Float[Array, "*graph node feat"]
    valid: Bool[Array, "*graph node"]
    edges: Bool[Array, "*graph node node"]
    """From the node of the second axis to that of the first; without self-loops."""
    hearers: tuple[Hearers, ...] = eqx.field(static=True)
    """Where edges may be."""


class CriticGraph(eqx.Module):
    """The whole team's graph, and what reading the released way takes to know."""

    graph: Graph
    hyperedges: Int[Array, "*graph agent"]
    """The node where each agent's hyperedges begin."""
    members: Bool[Array, "*graph agent"]
    """Agents that there are."""
    left_out: Int[Array, "*graph agent"]
    """Nodes left out before each agent's: teammates in the graphs of earlier ones."""


def graph_features(agent: int, task: int) -> int:
    """The width of all nodes: the type and the longest row."""
    return 1 + max(agent, task, 1)


def observation_graphs(seen: Observation) -> Graph:
    """The graph of every agent, along a first axis."""
    agents = jnp.arange(seen.agents.shape[0])
    return jax.vmap(observation_graph, in_axes=(None, 0))(seen, agents)


def observation_graph(seen: Observation, agent: Int[Array, ""]) -> Graph:
    """What one agent observes, around the things it may do."""
    layout = Layout.of(seen)
    offered = seen.options[agent]
    everyone = jnp.arange(layout.agents)
    # All of the roster, present or away: MOHITO's agents never leave the list.
    others = seen.roster & seen.sees_agents[agent] & (everyone != agent)
    always = jnp.ones(1, bool)
    valid = jnp.concatenate(
        [
            offered.reshape(-1),
            always,
            seen.exists & seen.sees_tasks[agent],
            always,
            offered.any(axis=0),
            always,
            others,
            always,
        ]
    )
    edges = _edges(layout, offered)
    edges &= valid[:, None] & valid[None, :]
    nodes = jnp.where(valid[:, None], _nodes(seen, agent, layout), 0.0)
    return Graph(nodes, valid, edges, layout.hearers)


def _nodes(
    seen: Observation, agent: Int[Array, ""], layout: Layout
) -> Float[Array, "node feat"]:
    width = graph_features(seen.agents.shape[1], seen.tasks.shape[1])

    def rows(kind: float, features: Float[Array, "row size"]) -> Array:
        front = jnp.full((features.shape[0], 1), kind)
        blank = jnp.full((features.shape[0], width - 1 - features.shape[1]), BLANK)
        return jnp.concatenate([front, features, blank], axis=1)

    known = jnp.where(seen.public[None, :], seen.agents, BLANK)
    verbs = jnp.append(jnp.arange(layout.actions, dtype=jnp.float32), NOOP_VERB)
    return jnp.concatenate(
        [
            rows(HYPEREDGE, jnp.ones((layout.hyperedges.stop, width - 1))),
            rows(TASK, seen.tasks),
            rows(TASK, jnp.full((1, width - 1), BLANK)),
            rows(VERB, verbs[:, None]),
            rows(OTHER, known),
            rows(SELF, seen.agents[agent][None, :]),
        ]
    )


def _edges(
    layout: Layout, offered: Bool[Array, "task action"]
) -> Bool[Array, "node node"]:
    """Agent, task and verb to hyperedge; teammates and tasks out of reach to self."""
    fixed = np.zeros((layout.nodes, layout.nodes), bool)
    for hyperedge in range(layout.hyperedges.stop):
        fixed[hyperedge, layout.parts_of(hyperedge)] = True
    fixed[layout.myself, layout.others] = True
    out_of_reach = jnp.append(~offered.any(axis=1), False)
    return jnp.asarray(fixed).at[layout.myself, layout.task_nodes].set(out_of_reach)


def critic_graph(
    seen: Observation,
    graphs: Graph,
    hyperedges: Float[Array, "agent hyperedge feat"],
) -> CriticGraph:
    """The agents' graphs side by side, tied together by selves and hyperedges.

    `graphs` are those of the observation; `hyperedges` what the actors make of theirs.
    Teammates are left out: everyone is there as itself.
    """
    layout = Layout.of(seen)
    agents, nodes = layout.agents, layout.critic_nodes
    spread = layout.hyperedges.stop
    kept = jnp.append(jnp.arange(layout.others.start), layout.myself)
    members = seen.roster
    valid = graphs.valid[:, kept] & members[:, None]
    features = graphs.nodes[:, kept].at[:, :spread].set(hyperedges)
    features = jnp.where(valid[:, :, None], features, 0.0)

    own = graphs.edges[:, kept][:, :, kept]
    same = jnp.eye(agents, dtype=bool)[:, None, :, None]
    edges = jnp.where(same, own[:, :, None, :], False)
    kind = jnp.arange(nodes)
    both_hyperedges = (kind < spread)[:, None] & (kind < spread)[None, :]
    both_selves = (kind == nodes - 1)[:, None] & (kind == nodes - 1)[None, :]
    edges |= (both_hyperedges | both_selves)[None, :, None, :]
    edges = edges.reshape(agents * nodes, agents * nodes)
    flat = valid.reshape(-1)
    edges &= flat[:, None] & flat[None, :] & ~jnp.eye(flat.shape[0], dtype=bool)

    others = jnp.sum(graphs.valid[:, layout.others], axis=1) * members
    features = features.reshape(agents * nodes, -1)
    return CriticGraph(
        graph=Graph(features, flat, edges, layout.critic_hearers),
        hyperedges=nodes * jnp.arange(agents),
        members=members,
        left_out=jnp.cumsum(others) - others,
    )
