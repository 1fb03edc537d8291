"""MOHITO's graphs: what an agent observes, and the whole team's for the critics.

A hypergraph of (agent, task, action) triples, flattened: every hyperedge, which is one
thing that the agent may do, becomes a node of its own that its parts point at. Arrays
have room for all tasks and agents; `copies` says which nodes there are, and no edge
touches another.

The team's graph is its agents' graphs side by side, in which every agent has its own
copies of the tasks and verbs. Copies of one task look the same, hear nothing and so
stay the same, whatever layers make of them: here they are one node, which counts as
often as there are copies.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Shaped

from plato.game import NOOP, Observation

SELF, OTHER, TASK, VERB, HYPEREDGE = 1.0, 2.0, 3.0, 4.0, 5.0
"""The types of nodes, their feature 0."""
BLANK = -1.0
"""Fills features that a node does not have, or that an agent may not see."""
NOOP_VERB = -1.0


class Layout(NamedTuple):
    """Where the nodes of a graph are: those that hear come first.

    An agent's hyperedges are numbered as actions are, but for NOOP, which comes last;
    so do the null task, which NOOP is about, and its verb.
    """

    agents: int
    """With hyperedges and a self in the graph."""
    number_of_tasks: int
    actions: int
    number_of_others: int
    joined: bool
    """Whether hyperedges hear each other, and selves do: in a team's graph."""

    @classmethod
    def of_agent(cls, seen: Observation) -> "Layout":
        """That of one agent's graph at a moment, or at any number of them, stacked."""
        agents, tasks, actions = seen.options.shape[-3:]
        return cls(1, tasks, actions, agents, joined=False)

    @classmethod
    def of_team(cls, seen: Observation) -> "Layout":
        """That of the critics' graph."""
        agents, tasks, actions = seen.options.shape[-3:]
        return cls(agents, tasks, actions, 0, joined=True)

    @property
    def each(self) -> int:
        """Hyperedges of an agent."""
        return self.number_of_tasks * self.actions + 1

    @property
    def hyperedges(self) -> slice:
        return slice(0, self.agents * self.each)

    @property
    def selves(self) -> slice:
        return _after(self.hyperedges, self.agents)

    @property
    def tasks(self) -> slice:
        return _after(self.selves, self.number_of_tasks + 1)

    @property
    def others(self) -> slice:
        return _after(self.tasks, self.number_of_others)

    @property
    def verbs(self) -> slice:
        return _after(self.others, self.actions + 1)

    @property
    def hearing(self) -> slice:
        """Nodes that edges may lead to."""
        return slice(0, self.selves.stop)

    def split(self, nodes: Float[Array, "node *rest"]) -> "Kinds":
        """Rows of nodes, kind by kind."""
        kinds = (self.hyperedges, self.selves, self.tasks, self.others)
        return Kinds(*jnp.split(nodes, [kind.stop for kind in kinds]))

    def parts(
        self, tasks: Shaped[Array, "task *rest"], verbs: Shaped[Array, "verb *rest"]
    ) -> tuple[Shaped[Array, "each *rest"], Shaped[Array, "each *rest"]]:
        """The task and the verb of each hyperedge of an agent."""
        every = (self.number_of_tasks, self.actions, *tasks.shape[1:])
        found = []
        for last, given in ((tasks, tasks[:-1, None]), (verbs, verbs[None, :-1])):
            given = jnp.broadcast_to(given, every).reshape(-1, *every[2:])
            found.append(jnp.concatenate([given, last[-1:]]))
        return found[0], found[1]

    def hyperedge_of(self, action: Int[Array, " *row"]) -> Int[Array, " *row"]:
        """The number of an action's hyperedge among its agent's."""
        return jnp.where(action == NOOP, self.each - 1, action - 1)

    def of_hyperedges(
        self, nodes: Float[Array, "*row node"]
    ) -> Float[Array, "*row agent choice"]:
        """Of a number for each node those of hyperedges, by agent and action."""
        numbers = nodes[..., self.hyperedges]
        return by_action(numbers.reshape(*nodes.shape[:-1], self.agents, self.each))

    def copied(self, nodes: Shaped[Array, " node"]) -> Shaped[Array, "agent copy"]:
        """Of a number for each node those of every agent's own copies, in the order of
        the source: its hyperedges, tasks, verbs and self."""
        own = nodes[self.hyperedges].reshape(self.agents, self.each)
        shared = jnp.concatenate([nodes[self.tasks], nodes[self.verbs]])
        shared = jnp.broadcast_to(shared, (self.agents, *shared.shape))
        return jnp.concatenate([own, shared, nodes[self.selves][:, None]], axis=1)


class Kinds(NamedTuple):
    """The rows of nodes, kind by kind."""

    hyperedges: Float[Array, "hyperedge *rest"]
    selves: Float[Array, "self *rest"]
    tasks: Float[Array, "task *rest"]
    others: Float[Array, "other *rest"]
    verbs: Float[Array, "verb *rest"]


def _after(rows: slice, count: int) -> slice:
    return slice(rows.stop, rows.stop + count)


def by_action(hyperedges: Float[Array, "*row each"]) -> Float[Array, "*row choice"]:
    """A number for each hyperedge, in the order of actions: NOOP first."""
    return jnp.roll(hyperedges, 1, axis=-1)


class Graph(eqx.Module):
    """A directed graph with features; several, with axes in front."""

    nodes: Float[Array, "*graph node feat"]
    copies: Float[Array, "*graph node"]
    """As how many nodes each one counts; 0 where there is none."""
    hyperedges: Bool[Array, "*graph agent each"]
    """Those that there are. They hear their verb, their self and themselves."""
    about: Bool[Array, "*graph agent each"]
    """Those that hear their task, too: agents may be offered what they do not see."""
    selves_hear: Bool[Array, "*graph agent heard"]
    """Which nodes, themselves among them."""
    layout: Layout = eqx.field(static=True)


class Copies(NamedTuple):
    """Which nodes each agent has a copy of, in the order of the source."""

    hyperedges: Bool[Array, "agent each"]
    tasks: Bool[Array, "agent task"]
    verbs: Bool[Array, "agent verb"]

    @classmethod
    def of(cls, seen: Observation) -> "Copies":
        offered = seen.options
        agents = offered.shape[0]
        always = jnp.ones((agents, 1), bool)
        known = seen.exists[None, :] & seen.sees_tasks
        return cls(
            jnp.concatenate([offered.reshape(agents, -1), always], axis=1),
            jnp.concatenate([known, always], axis=1),
            jnp.concatenate([offered.any(axis=1), always], axis=1),
        )

    def about(self, layout: Layout) -> Bool[Array, "agent each"]:
        """Hyperedges whose task the agent has a copy of."""
        known, _ = jax.vmap(layout.parts)(self.tasks, self.verbs)
        return self.hyperedges & known

    def out_of_reach(self, offered: Bool[Array, "agent task action"]) -> Array:
        """Tasks that each agent knows and can do nothing about; never the null task."""
        unreached = jnp.pad(~offered.any(axis=2), ((0, 0), (0, 1)))
        return unreached & self.tasks


class CriticGraph(eqx.Module):
    """The whole team's graph, and what reading the released way takes to know."""

    graph: Graph
    members: Bool[Array, "*graph agent"]
    """Agents that there are."""
    copies: Bool[Array, "*graph agent copy"]
    """Nodes that each agent has a copy of, in the order of the source."""
    left_out: Int[Array, "*graph agent"]
    """Nodes left out before each agent's: teammates in the graphs of earlier ones."""


def graph_features(agent: int, task: int) -> int:
    """The width of all nodes: the type and the longest row."""
    return 1 + max(agent, task, 1)


def observation_graphs(seen: Observation) -> Graph:
    """What each agent observes, around the things it may do: a graph for every one."""
    layout = Layout.of_agent(seen)
    copies = Copies.of(seen)
    agents = seen.roster.shape[0]
    others = _others(seen)
    always = jnp.ones((agents, 1), bool)
    there = jnp.concatenate(
        [copies.hyperedges, always, copies.tasks, others, copies.verbs], axis=1
    )
    hear = jnp.concatenate([always, copies.out_of_reach(seen.options), others], axis=1)

    hyperedges, selves, tasks, verbs = _features(seen)
    known = jnp.where(seen.public[None, :], seen.agents, BLANK)
    seen_others = _rows(OTHER, known, hyperedges.shape[1])

    def of_agent(myself: Float[Array, " feat"], there: Bool[Array, " node"]) -> Array:
        parts = [hyperedges, myself[None, :], tasks, seen_others, verbs]
        return jnp.where(there[:, None], jnp.concatenate(parts), 0.0)

    return Graph(
        nodes=jax.vmap(of_agent)(selves, there),
        copies=there.astype(jnp.float32),
        hyperedges=copies.hyperedges[:, None],
        about=copies.about(layout)[:, None],
        selves_hear=hear[:, None],
        layout=layout,
    )


def critic_graph(
    seen: Observation, hyperedges: Float[Array, "agent each feat"]
) -> CriticGraph:
    """The agents' graphs side by side, tied together by selves and hyperedges.

    `hyperedges` are what the actors make of theirs. Teammates are left out: everyone is
    there as itself.
    """
    layout, members = Layout.of_team(seen), seen.roster
    copies = Copies(*(own & members[:, None] for own in Copies.of(seen)))
    counts = [rows.sum(axis=0) for rows in (copies.tasks, copies.verbs)]
    count = jnp.concatenate([copies.hyperedges.reshape(-1), members, *counts])

    _, selves, tasks, verbs = _features(seen)
    made = hyperedges.reshape(-1, hyperedges.shape[2])
    nodes = jnp.concatenate([made, selves, tasks, verbs])
    together = members[:, None] & members[None, :]
    hear = jnp.concatenate([together, copies.out_of_reach(seen.options)], axis=1)

    others = jnp.sum(_others(seen), axis=1) * members
    return CriticGraph(
        graph=Graph(
            nodes=jnp.where((count > 0)[:, None], nodes, 0.0),
            copies=count.astype(jnp.float32),
            hyperedges=copies.hyperedges,
            about=copies.about(layout),
            selves_hear=hear,
            layout=layout,
        ),
        members=members,
        copies=jnp.concatenate([*copies, members[:, None]], axis=1),
        left_out=jnp.cumsum(others) - others,
    )


def _others(seen: Observation) -> Bool[Array, "agent agent"]:
    """Whom each agent has in its graph beside itself: all of the roster that it sees,
    present or away, for MOHITO's agents never leave the list."""
    myself = jnp.eye(seen.roster.shape[0], dtype=bool)
    return seen.roster[None, :] & seen.sees_agents & ~myself


def _features(seen: Observation) -> tuple[Array, Array, Array, Array]:
    """Of hyperedges before any actor, of selves, of tasks and of verbs."""
    width = graph_features(seen.agents.shape[1], seen.tasks.shape[1])
    layout = Layout.of_agent(seen)
    null = jnp.full((1, width - 1), BLANK)
    verbs = jnp.append(jnp.arange(layout.actions, dtype=jnp.float32), NOOP_VERB)
    return (
        _rows(HYPEREDGE, jnp.ones((layout.each, width - 1)), width),
        _rows(SELF, seen.agents, width),
        jnp.concatenate([_rows(TASK, seen.tasks, width), _rows(TASK, null, width)]),
        _rows(VERB, verbs[:, None], width),
    )


def _rows(
    kind: float, features: Float[Array, "row size"], width: int
) -> Float[Array, "row feat"]:
    """Nodes of a type, filled up to the width of all."""
    front = jnp.full((features.shape[0], 1), kind)
    blank = jnp.full((features.shape[0], width - 1 - features.shape[1]), BLANK)
    return jnp.concatenate([front, features, blank], axis=1)
