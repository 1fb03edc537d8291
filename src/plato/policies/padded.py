"""The fixed-width view of a game that padded methods need, and the way back from it.

A padded network is bound to N, the number of agents it is built for, and to `pad`, the
number of tasks it has room for. What an agent sees becomes one vector of fixed size:

    its own features | N - 1 others, public features only | `pad` tasks

and what it may do becomes 1 + `pad` slots (times the actions of a task): NOOP, then the
tasks in the same order as in the vector. Reachable tasks come first, in row order, then
the others it sees; what does not fit is cut off. Whatever is missing (an empty slot, an
agent or a feature that is not seen) is -1.

N is the size of a roster, not of an array. Rows that are not on the roster are skipped
wherever they are, so capacity remains memory: it can be larger than N, or smaller. The
parameters of a network do depend on N. On a smaller roster its missing others are -1;
on a larger one each agent sees the first N - 1 others alone. Agents that are away stay
on the roster and in the view, as they do in the reference environment.
"""

from dataclasses import dataclass
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Shaped

from plato.configuration import whole_number
from plato.errors import PlatoError
from plato.game import NOOP, Features, Observation

EMPTY = -1.0
"""Stands for what is not there."""


@dataclass(frozen=True)
class PaddedShape:
    """The numbers that a padded network is bound to."""

    agents: int
    """N: how many agents the roster has, present or away."""
    agent_features: int
    task_features: int
    actions: int = 1
    """How many actions a task offers."""
    pad: int = 8
    """Room for tasks: the most of all games to be played, or fewer to truncate."""

    def __post_init__(self) -> None:
        for name in ("agents", "agent_features", "task_features", "actions", "pad"):
            whole_number(name, getattr(self, name), 1)

    @property
    def features(self) -> Features:
        """The sizes of features alone, which are all that a pointer is bound to."""
        return Features(self.agent_features, self.task_features, self.actions)

    @property
    def width(self) -> int:
        """Numbers in one agent's view."""
        return self.agents * self.agent_features + self.pad * self.task_features

    @property
    def slots(self) -> int:
        """NOOP, and the actions on each task that there is room for."""
        return 1 + self.pad * self.actions


class PaddedView(eqx.Module):
    """What a padded network is given, and what its outputs mean."""

    features: Float[Array, "*game agent width"]
    actions: Int[Array, "*game agent slot"]
    """The game's number of the action behind each slot; NOOP behind closed ones."""

    @property
    def mask(self) -> Bool[Array, "*game agent slot"]:
        """Which slots each agent may choose; NOOP, in front, always."""
        return (self.actions != NOOP).at[..., 0].set(True)

    def known(self, choices: int) -> Bool[Array, "agent choice"]:
        """Which of the game's actions have an open slot; NOOP always."""
        numbers = jnp.arange(choices)[None, None, :]
        return (self.actions[:, :, None] == numbers).any(axis=1)

    def in_game_order(
        self, values: Float[Array, "agent slot"], choices: int
    ) -> Float[Array, "agent choice"]:
        """Values of slots as values of the game's actions, NOOP and task-actions.

        What no open slot stands for has the least float there is.
        """
        lowest = float(jnp.finfo(values.dtype).min)
        one = partial(arranged, places=choices, empty=lowest)
        return jax.vmap(one)(values, self.actions, self.mask)


def padded_view(shape: PaddedShape, seen: Observation) -> PaddedView:
    """The view of every agent; rows that are not on the roster see nothing at all."""
    _check(shape, seen)
    agents = seen.agents.shape[0]
    others = jax.vmap(partial(_others, shape, seen))(
        jnp.arange(agents), seen.sees_agents
    )
    tasks, numbers = jax.vmap(partial(_tasks, shape, seen))(
        seen.sees_tasks, seen.options
    )
    features = jnp.concatenate([seen.agents, others, tasks], axis=1)
    noop = jnp.full((agents, 1), NOOP, numbers.dtype)
    return PaddedView(
        features=jnp.where(seen.roster[:, None], features, EMPTY),
        actions=jnp.concatenate([noop, numbers], axis=1),
    )


def joint_view(
    shape: PaddedShape, seen: Observation, view: PaddedView
) -> Float[Array, " joint"]:
    """The views of N agents in one vector, for networks that see them all at once."""
    place = jnp.cumsum(seen.roster) - 1
    rows = arranged(view.features, place, seen.roster, shape.agents, EMPTY)
    return rows.reshape(-1)


def arranged(
    rows: Shaped[Array, "row *feat"],
    place: Int[Array, " row"],
    marked: Bool[Array, " row"],
    places: int,
    empty: float,
) -> Shaped[Array, "place *feat"]:
    """Puts each marked row in its place, no two in one; `empty` where none is.

    Places are compared instead of indexed, so that there may be no row at all, rows
    beyond the last place fall out, and what is in unmarked rows does not matter.
    """
    holds = marked[None, :] & (place[None, :] == jnp.arange(places)[:, None])
    further = tuple(range(2, rows.ndim + 1))
    put = jnp.where(jnp.expand_dims(holds, further), rows[None], 0)
    taken = jnp.expand_dims(holds.any(axis=1), tuple(f - 1 for f in further))
    return jnp.where(taken, put.sum(axis=1), empty).astype(rows.dtype)


def _others(
    shape: PaddedShape,
    seen: Observation,
    me: Int[Array, ""],
    sees: Bool[Array, " agent"],
) -> Float[Array, " others"]:
    """What one agent sees of the others; who is not seen leaves a place empty."""
    others = seen.roster & (jnp.arange(seen.roster.shape[0]) != me)
    public = jnp.where(seen.public[None, :], seen.agents, EMPTY)
    place = jnp.cumsum(others) - 1
    return arranged(public, place, others & sees, shape.agents - 1, EMPTY).reshape(-1)


def _tasks(
    shape: PaddedShape,
    seen: Observation,
    sees: Bool[Array, " task"],
    options: Bool[Array, "task action"],
) -> tuple[Float[Array, " tasks"], Int[Array, " numbers"]]:
    """The tasks one agent has room for, and the numbers of its actions on them."""
    reachable = options.any(axis=1) & seen.exists
    further = sees & seen.exists & ~reachable
    place = jnp.where(
        reachable, jnp.cumsum(reachable), reachable.sum() + jnp.cumsum(further)
    )
    numbers = jnp.arange(1, options.size + 1).reshape(options.shape)
    numbers = jnp.where(options, numbers, NOOP)
    # An option on a task that is not seen keeps its slot and shows nothing there.
    rows = arranged(seen.tasks, place - 1, sees & seen.exists, shape.pad, EMPTY)
    behind = arranged(numbers, place - 1, reachable, shape.pad, NOOP)
    return rows.reshape(-1), behind.reshape(-1)


def _check(shape: PaddedShape, seen: Observation) -> None:
    """Sizes are known when a program is built: say what is wrong before it runs."""
    built = (shape.agent_features, shape.task_features, shape.actions)
    found = (seen.agents.shape[1], seen.tasks.shape[1], seen.options.shape[2])
    if built != found:
        names = "agent features, task features and actions per task"
        raise PlatoError(f"This network is built for {built} {names}, not for {found}.")
