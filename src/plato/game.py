"""The task-and-agent-open Markov game: what a domain gives and a policy may see.

The paper's TaAgO-MG is a tuple (M, X, N, Psi): a base game M, the tasks X that exist
now, the agents N that are present now, and a generator Psi that turns the three into
the game of this moment. Here M is a `Game` (pure functions over arrays, every number in
it data), X and N are the masks `exists` and `present` of an `Observation`, and Psi is
`Game.observe`: from the state it says who is there, what is there, and who may do what.

Arrays have a capacity, and rows beyond the current sets are masked. Capacity is memory,
not meaning: no result may depend on it. Axis names used in all shapes: `agent`, `task`,
`action` (the actions one task offers), `choice` (NOOP and then every task-action), and
in front of them `game` and `time`.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from plato.errors import PlatoError

State = TypeVar("State")
Noise = TypeVar("Noise")

NOOP = 0
"""The action that is always there; task-action (x, a) is 1 + x * actions + a."""


NO_ARRAYS = (
    "the game holds no array, so a batch of it cannot be trained; keep one of its "
    "numbers, its horizon for one, in a field that is a JAX array."
)
"""Said of a game of which all is static."""


class Capacity(NamedTuple):
    """How many rows the arrays of a game have. The only static thing about it."""

    agents: int
    tasks: int
    actions: int


WithinReach: TypeAlias = tuple[tuple[bool, ...], ...]
"""`Game.within_reach` in plain Python, a row for each agent: fit to be static."""


class Features(NamedTuple):
    """How many features a domain gives an agent and a task, and actions per task."""

    agent: int
    task: int
    actions: int


class Observation(eqx.Module):
    """What can be seen of one moment of a game, for all agents together.

    Agent i sees the row of agent j where `sees_agents[i, j]`, and in it the features
    marked in `public` (of itself it sees all of them); it sees the row of task x where
    `sees_tasks[i, x]`. It may choose among its `options` and NOOP.
    """

    agents: Float[Array, "agent agent_feat"]
    roster: Bool[Array, " agent"]
    """Rows that belong to an agent at all, present or away."""
    present: Bool[Array, " agent"]
    tasks: Float[Array, "task task_feat"]
    exists: Bool[Array, " task"]
    public: Bool[Array, " agent_feat"]
    sees_agents: Bool[Array, "agent agent"]
    sees_tasks: Bool[Array, "agent task"]
    options: Bool[Array, "agent task action"]

    @property
    def action_mask(self) -> Bool[Array, "agent choice"]:
        """Which actions each agent may take; NOOP, in front, always."""
        agents = self.options.shape[0]
        noop = jnp.ones((agents, 1), bool)
        return jnp.concatenate([noop, self.options.reshape(agents, -1)], axis=1)


class Outcome(eqx.Module):
    """What a transition led to, besides the next state."""

    reward: Float[Array, " agent"]
    terminated: Bool[Array, ""]
    """The game is over; nothing of worth can follow."""
    truncated: Bool[Array, ""]
    """The time limit was reached; the game itself could go on."""
    events: dict[str, Int[Array, ""]]
    """What the domain counts, by name."""

    @property
    def done(self) -> Bool[Array, ""]:
        return self.terminated | self.truncated


class Game(eqx.Module, Generic[State, Noise]):
    """A domain with one setup in it. Everything that setups differ in is an array.

    Games of equal capacity can therefore be stacked (`stack`) and mapped over:
    `jax.vmap(lambda game, key: game.reset(key))(games, keys)`.
    """

    @property
    @abstractmethod
    def capacity(self) -> Capacity:
        """Rows for agents and tasks, and actions per task."""

    @property
    def roster(self) -> Bool[Array, " agent"]:
        """The rows that belong to an agent at all, present or away: all of them,
        unless a domain leaves some empty."""
        return jnp.ones(self.capacity.agents, bool)

    @property
    def within_reach(self) -> Bool[Array, "agent task"]:
        """On which tasks each agent may ever have options: any, unless a domain knows
        better. MOHITO's critics leave the others out, and are NaN if there is an option
        on one of them all the same."""
        agents, tasks, _ = self.capacity
        return jnp.ones((agents, tasks), bool)

    @property
    @abstractmethod
    def horizon(self) -> Int[Array, ""]:
        """Steps after which an episode is truncated."""

    def agent_name(self, index: int) -> str:
        """The name by which users know an agent."""
        return f"agent_{index + 1}"

    @abstractmethod
    def initial(self, key: PRNGKeyArray) -> State:
        """A first state."""

    @abstractmethod
    def observe(self, state: State) -> Observation:
        """The generator Psi: the sets, what is seen, and the options of this moment."""

    @abstractmethod
    def noise(self, key: PRNGKeyArray) -> Noise:
        """All the randomness of one transition, drawn in one place."""

    @abstractmethod
    def transition(
        self, state: State, actions: Int[Array, " agent"], noise: Noise
    ) -> tuple[State, Outcome]:
        """The dynamics, a function of its arguments alone."""

    def reset(self, key: PRNGKeyArray) -> tuple[State, Observation]:
        """A first state and what can be seen of it."""
        state = self.initial(key)
        return state, self.observe(state)

    def step(
        self, key: PRNGKeyArray, state: State, actions: Int[Array, " agent"]
    ) -> tuple[State, Observation, Outcome]:
        """One transition; the observation is that of the state it led to."""
        state, outcome = self.transition(state, actions, self.noise(key))
        return state, self.observe(state), outcome


def features_of(game: Game[Any, Any]) -> Features:
    """What networks must know of a domain: sizes of features, never of sets."""
    seen = jax.eval_shape(lambda: game.reset(jax.random.key(0))[1])
    return Features(seen.agents.shape[-1], seen.tasks.shape[-1], game.capacity.actions)


class Turn(eqx.Module, Generic[State]):
    """A step with auto-reset: where to go on from, and how the last step ended."""

    state: State
    observation: Observation
    """To act on next: of the new episode where the old one is done."""
    final_observation: Observation
    """Of the state the step led to, for bootstrapping truncated episodes."""
    outcome: Outcome


def step_and_reset(
    game: Game[State, Any],
    key: PRNGKeyArray,
    state: State,
    actions: Int[Array, " agent"],
) -> Turn[State]:
    """Steps, and begins a new episode where that ended one."""
    key_step, key_reset = jax.random.split(key)
    uncut = jnp.zeros((), bool)
    return take_turn(game, game.noise(key_step), key_reset, state, actions, uncut)


def take_turn(
    game: Game[State, Noise],
    noise: Noise,
    key_reset: PRNGKeyArray,
    state: State,
    actions: Int[Array, " agent"],
    cut: Bool[Array, ""],
) -> Turn[State]:
    """The same with noise that is given; where `cut`, the episode ends here."""
    reached, outcome = game.transition(state, actions, noise)
    truncated = outcome.truncated | (cut & ~outcome.terminated)
    outcome = replace(outcome, truncated=truncated)
    final_observation = game.observe(reached)
    following = select(outcome.done, game.initial(key_reset), reached)
    return Turn(following, game.observe(following), final_observation, outcome)


class ReplayedState(eqx.Module, Generic[State]):
    """The state of a game under recorded noise, and how far the record was read."""

    inner: State
    time: Int[Array, ""]


class ReplayedNoise(Game[ReplayedState[State], None]):
    """A game whose every episode meets the same recorded noise, step by step."""

    game: Game[State, Any]
    record: PyTree
    """The noise of each step, stacked along a first axis of at least the horizon."""

    @property
    def capacity(self) -> Capacity:
        return self.game.capacity

    @property
    def roster(self) -> Bool[Array, " agent"]:
        return self.game.roster

    @property
    def within_reach(self) -> Bool[Array, "agent task"]:
        return self.game.within_reach

    @property
    def horizon(self) -> Int[Array, ""]:
        return self.game.horizon

    def agent_name(self, index: int) -> str:
        return self.game.agent_name(index)

    def initial(self, key: PRNGKeyArray) -> ReplayedState[State]:
        return ReplayedState(self.game.initial(key), jnp.zeros((), jnp.int32))

    def observe(self, state: ReplayedState[State]) -> Observation:
        return self.game.observe(state.inner)

    def noise(self, key: PRNGKeyArray) -> None:
        del key

    def transition(
        self,
        state: ReplayedState[State],
        actions: Int[Array, " agent"],
        noise: None,
    ) -> tuple[ReplayedState[State], Outcome]:
        noise_now = jax.tree.map(lambda record: record[state.time], self.record)
        inner, outcome = self.game.transition(state.inner, actions, noise_now)
        return ReplayedState(inner, state.time + 1), outcome


Tree = TypeVar("Tree")


def select(condition: Bool[Array, ""], if_true: Tree, if_false: Tree) -> Tree:
    """`jnp.where` over whole pytrees."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), if_true, if_false)


def power_of_two(rows: int) -> int:
    """The least power of two that holds these rows: how arrays grow."""
    return 1 << max(rows - 1, 0).bit_length()


def how_many(stacked: PyTree) -> int:
    """How many games (or policies, or runs) are stacked in a pytree."""
    return jax.tree.leaves(stacked)[0].shape[0]


def stack(games: Sequence[Tree]) -> Tree:
    """Games of equal capacity as one batch, to be mapped over their first axis."""
    shapes = [[jnp.shape(leaf) for leaf in jax.tree.leaves(game)] for game in games]
    if any(shape != shapes[0] for shape in shapes):
        raise PlatoError(
            "These games have arrays of different sizes; build them with the same "
            "capacity before stacking them."
        )
    return jax.tree.map(lambda *leaves: _stacked(leaves), *games)


def _stacked(leaves: Sequence[Any]) -> Array:
    """In NumPy where that can be done, which compiles nothing."""
    try:
        return jax.device_put(np.stack([np.asarray(leaf) for leaf in leaves]))
    except TypeError:  # they are traced, or keys
        return jnp.stack(leaves)
