"""MOHITO's graphs: what an agent observes, and the whole team's for the critics.

A hypergraph of (agent, task, action) triples, flattened: every hyperedge, which is one
thing that the agent may do, becomes a node of its own that its parts point at. Arrays
have room for all tasks and agents; `copies` says which nodes there are, and no edge
touches another.

The team's graph is its agents' graphs side by side, in which every agent has its own
copies of the tasks and verbs. Copies of one task look the same, hear nothing and so
stay the same, whatever layers make of them: here they are one node, which counts as
often as there are copies. And as every hyperedge hears every other one, it has no room
for hyperedges of tasks that are never within an agent's reach.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Shaped

from plato.errors import PlatoError
from plato.game import NOOP, Observation, WithinReach

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
    places: tuple[int, ...]
    """The hyperedges that there is room for, by their numbers among all of them, one
    agent's after the other's."""

    @classmethod
    def of_agent(cls, seen: Observation) -> "Layout":
        """That of one agent's graph at a moment, or at any number of them, stacked."""
        agents, tasks, actions = seen.options.shape[-3:]
        every = tuple(range(tasks * actions + 1))
        return cls(1, tasks, actions, agents, joined=False, places=every)

    @classmethod
    def of_team(cls, seen: Observation, reach: WithinReach | None = None) -> "Layout":
        """That of the critics' graph, if so much is within reach; else everything."""
        agents, tasks, actions = seen.options.shape[-3:]
        near = np.ones((agents, tasks), bool) if reach is None else np.asarray(reach)
        if near.shape != (agents, tasks):
            raise PlatoError(
                f"What is within reach is of {near.shape} agents and tasks, and these "
                f"games have rows for {(agents, tasks)}."
            )
        offers = np.repeat(near, actions, axis=1)
        offers = np.pad(offers, ((0, 0), (0, 1)), constant_values=True)
        places = tuple(np.flatnonzero(offers).tolist())
        return cls(agents, tasks, actions, 0, joined=True, places=places)

    @property
    def each(self) -> int:
        """Hyperedges of an agent, room or none."""
        return self.number_of_tasks * self.actions + 1

    @property
    def room(self) -> Bool[np.ndarray, "agent each"]:
        """For which hyperedges there is some."""
        room = np.zeros(self.agents * self.each, bool)
        room[list(self.places)] = True
        return room.reshape(self.agents, self.each)

    @property
    def hyperedges(self) -> slice:
        return slice(0, len(self.places))

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

    def parts(self, kinds: "Kinds") -> list[Float[Array, "hyperedge *rest"]]:
        """The task, the verb and the self of each hyperedge."""
        agent, own = np.divmod(self.places, self.each)
        task, verb = np.divmod(own, self.actions)
        verb[own == self.each - 1] = self.actions
        found = [(kinds.tasks, task), (kinds.verbs, verb), (kinds.selves, agent)]
        return [taken(rows, which) for rows, which in found]

    def with_room(
        self, every: Shaped[Array, "agent each *rest"]
    ) -> Shaped[Array, "hyperedge *rest"]:
        """Of rows for all hyperedges those of the ones that there is room for."""
        rows = every.reshape(-1, *every.shape[2:])
        return taken(rows, np.asarray(self.places))

    def of_all(
        self, rows: Shaped[Array, "hyperedge *rest"]
    ) -> Shaped[Array, "agent each *rest"]:
        """The way back: zeros where there was no room."""
        if len(self.places) == self.agents * self.each:
            return rows.reshape(self.agents, self.each, *rows.shape[1:])
        where = np.full(self.agents * self.each, len(self.places))
        where[list(self.places)] = np.arange(len(self.places))
        found = taken(jnp.pad(rows, ((0, 1), *[(0, 0)] * (rows.ndim - 1))), where)
        return found.reshape(self.agents, self.each, *rows.shape[1:])

    def hyperedge_of(self, action: Int[Array, " *row"]) -> Int[Array, " *row"]:
        """The number of an action's hyperedge among its agent's."""
        return jnp.where(action == NOOP, self.each - 1, action - 1)

    def of_hyperedges(self, nodes: Float[Array, " node"]) -> Array:
        """Of a number for each node those of hyperedges, by agent and choice."""
        return by_action(self.of_all(nodes[self.hyperedges]))

    def copied(self, nodes: Shaped[Array, " node"]) -> Shaped[Array, "agent copy"]:
        """Of a number for each node those of every agent's own copies, in the order of
        the source: its hyperedges, tasks, verbs and self."""
        own = self.of_all(nodes[self.hyperedges])
        shared = jnp.concatenate([nodes[self.tasks], nodes[self.verbs]])
        shared = jnp.broadcast_to(shared, (self.agents, *shared.shape))
        return jnp.concatenate([own, shared, nodes[self.selves][:, None]], axis=1)


def taken(
    rows: Shaped[Array, "row *rest"], which: Int[np.ndarray, " taken"]
) -> Shaped[Array, "taken *rest"]:
    """Rows by their numbers, with a gradient that scatters nothing."""
    if which.tolist() == list(range(rows.shape[0])):
        return rows
    of_row = which == np.arange(rows.shape[0])[:, None]

    @jax.custom_vjp
    def take(rows: Array) -> Array:
        return rows[which]

    def back(_: None, slopes: Array) -> tuple[Array]:
        own = of_row.reshape(*of_row.shape, *[1] * (slopes.ndim - 1))
        return (jnp.sum(jnp.where(own, slopes[None], 0.0), axis=1),)

    take.defvjp(lambda rows: (take(rows), None), back)
    return take(rows)


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
    hyperedges: Bool[Array, "*graph hyperedge"]
    """Those that there are. They hear their verb, their self and themselves."""
    about: Bool[Array, "*graph hyperedge"]
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
        known = jnp.repeat(self.tasks[:, :-1], layout.actions, axis=1)
        return self.hyperedges & jnp.concatenate([known, self.tasks[:, -1:]], axis=1)

    def out_of_reach(self, offered: Bool[Array, "agent task action"]) -> Array:
        """Tasks that each agent knows and can do nothing about; never the null task."""
        unreached = jnp.pad(~offered.any(axis=2), ((0, 0), (0, 1)))
        return unreached & self.tasks


class CriticGraph(eqx.Module):
    """The whole team's graph, and what reading the released way takes to know."""

    graph: Graph
    members: Bool[Array, "*graph agent"]
    """Agents that there are."""
    lost: Bool[Array, "*graph"]
    """Whether a hyperedge that there is has no room."""
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
        hyperedges=copies.hyperedges,
        about=copies.about(layout),
        selves_hear=hear[:, None],
        layout=layout,
    )


def critic_graph(
    seen: Observation,
    hyperedges: Float[Array, "agent each feat"],
    reach: WithinReach | None = None,
) -> CriticGraph:
    """The agents' graphs side by side, tied together by selves and hyperedges.

    `hyperedges` are what the actors make of theirs; there is room for those of tasks
    within `reach`. Teammates are left out: everyone is there as itself.
    """
    layout, members = Layout.of_team(seen, reach), seen.roster
    copies = Copies(*(own & members[:, None] for own in Copies.of(seen)))
    counts = [rows.sum(axis=0) for rows in (copies.tasks, copies.verbs)]
    offered = layout.with_room(copies.hyperedges)
    count = jnp.concatenate([offered, members, *counts])

    _, selves, tasks, verbs = _features(seen)
    nodes = [layout.with_room(hyperedges), selves, tasks, verbs]
    together = members[:, None] & members[None, :]
    hear = jnp.concatenate([together, copies.out_of_reach(seen.options)], axis=1)

    others = jnp.sum(_others(seen), axis=1) * members
    return CriticGraph(
        graph=Graph(
            nodes=jnp.where((count > 0)[:, None], jnp.concatenate(nodes), 0.0),
            copies=count.astype(jnp.float32),
            hyperedges=offered,
            about=layout.with_room(copies.about(layout)),
            selves_hear=hear,
            layout=layout,
        ),
        members=members,
        lost=jnp.any(copies.hyperedges & ~layout.room),
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
