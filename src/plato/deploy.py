"""Trained policies in use: any numbers of agents and tasks, NumPy in and out."""

import io
import json
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from plato import numpy_actor
from plato.errors import PlatoError
from plato.files import write_bytes, write_text
from plato.game import Observation, power_of_two
from plato.numpy_actor import (
    checked_mask,
    checked_memory,
    checked_options,
    checked_rows,
)
from plato.policies.checkpoint import load_actor, public_features, trained_file
from plato.policies.pointer import Memory, PointerActor
from plato.policies.pretrained import pretrained_file
from plato.tensors import named_leaves, read_header

Checked = TypeVar("Checked")

LEAST = 8
"""Rows of agents and tasks that there is always room for: fewer save no time."""
EVERY_CALL = 2**10
"""What a decision costs whatever its size, in pairs of rows that are scored: a fifth of
a millisecond on a CPU, where a pair takes a fifth of a microsecond."""
SPARE = 4
"""How many times the work that is needed a decision may take, so that less is compiled:
that takes as long as a thousand small decisions."""


class Decision(NamedTuple):
    """What a policy makes of a moment."""

    actions: np.ndarray
    """One for each agent: 0 for NOOP, else 1 + task * actions + action."""
    probabilities: np.ndarray
    """(agents, 1 + tasks * actions): of NOOP and of every task-action."""
    memory: Memory | None
    """To be given with the next decision, a row for each agent, where the policy
    remembers (encoder lstm); otherwise None."""


class Room(NamedTuple):
    """How many rows of agents and tasks a compiled program has; results do not depend
    on it."""

    agents: int
    tasks: int

    def joined(self, other: "Room") -> "Room":
        """The least that holds what either does."""
        return Room(max(self.agents, other.agents), max(self.tasks, other.tasks))


def work(room: Room) -> int:
    """What a decision there costs, in pairs of rows: agents score each other and the
    tasks."""
    return EVERY_CALL + room.agents * (room.agents + room.tasks)


def room_for(agents: int, tasks: int, compiled: Collection[Room]) -> Room:
    """Where to decide a moment of such a size, given what has been compiled.

    It is the least room that is compiled and holds the moment, unless it takes more
    than `SPARE` times the work of the moment's own powers of two: a policy that has met
    a crowd once should not be slow with a few for ever after.

    Where there is none, a new room holds the moment, and as much of another room as the
    same bound allows. So moments of similar work compile only when their agents or
    their tasks outgrow what there was: log + log times, not once for every pair of
    powers of two.
    """
    own = Room(max(LEAST, power_of_two(agents)), max(LEAST, power_of_two(tasks)))
    rooms = [own, *map(own.joined, compiled)]
    rooms = [room for room in rooms if work(room) <= SPARE * work(own)]
    ready = [room for room in rooms if room in compiled]
    return min(ready, key=work) if ready else max(rooms, key=work)


class DeployedPolicy:
    """Decides for whoever is there, about whatever there is to do.

    Arrays grow by powers of two and are used again for what is smaller (`room_for`), so
    that an open system compiles a handful of programs and never meets a limit.

    `public` marks the features of an agent that others see, as the policy was trained;
    all of them unless it is said otherwise.
    """

    def __init__(
        self, actor: PointerActor, *, public: ArrayLike | None = None, seed: int = 0
    ) -> None:
        self.actor = actor
        shape = (actor.agent_features,)
        self.public = _checked(
            checked_mask,
            "public",
            np.ones(shape) if public is None else public,
            shape,
        )
        self._random = np.random.default_rng(seed)
        self._first = jax.device_get(actor.start(0))
        # Replaced, not changed: several threads may decide with one policy.
        self._compiled: frozenset[Room] = frozenset()

    def decide(
        self,
        agents: ArrayLike,
        tasks: ArrayLike,
        options: ArrayLike,
        *,
        present: ArrayLike | None = None,
        sees_agents: ArrayLike | None = None,
        sees_tasks: ArrayLike | None = None,
        public: ArrayLike | None = None,
        memory: Sequence[ArrayLike] | None = None,
        greedy: bool = False,
    ) -> Decision:
        """Chooses for the agents among the tasks that exist.

        `agents` and `tasks` are rows of features, or none; `options` says for each
        agent and task (and action, where tasks have several) whether it may be chosen;
        agents that are not present, and tasks that an agent does not see, are never
        offered.

        Unless it is said otherwise all agents are present and everybody sees everybody
        and all tasks. `present` marks the agents that are, `sees_agents[i, j]` whether
        i sees j, `sees_tasks[i, x]` whether i sees x, and `public` the features of an
        agent that others see: those they saw in training, unless given.

        A policy that remembers is given the `memory` of the last decision, its rows
        arranged as the agents are now; None begins anew.
        """
        moment = self._moment(agents, tasks, options)
        masks = {
            "present": present,
            "sees_agents": sees_agents,
            "sees_tasks": sees_tasks,
            "public": public,
        }
        moment |= {
            name: _checked(checked_mask, name, mask, moment[name].shape)
            for name, mask in masks.items()
            if mask is not None
        }
        there = moment["present"][:, None] & moment["sees_tasks"]
        moment["options"] = moment["options"] & there[:, :, None]
        probabilities, later = self._policy(moment, self._memory(memory, moment))
        if greedy:
            return Decision(probabilities.argmax(axis=1), probabilities, later)
        totals = np.cumsum(probabilities, axis=1)
        numbers = self._random.random(len(totals))[:, None] * totals[:, -1:]
        return Decision((totals <= numbers).sum(axis=1), probabilities, later)

    def _policy(
        self, moment: dict[str, np.ndarray], memory: Memory | None
    ) -> tuple[Float[np.ndarray, "agent choice"], Memory | None]:
        """Probabilities and the next memory, by a program with room for the moment."""
        agents, tasks, actions = moment["options"].shape
        room = room_for(agents, tasks, self._compiled)
        remembered = jax.tree.map(lambda part: _grown(part, room.agents), memory)
        found = _log_policy(self.actor, _roomy(moment, room), remembered)
        self._compiled |= {room}
        logs, later = jax.device_get(found)
        probabilities = np.exp(logs[:agents, : 1 + tasks * actions])
        return probabilities, jax.tree.map(lambda part: part[:agents], later)

    def _memory(
        self, memory: Sequence[ArrayLike] | None, moment: dict[str, np.ndarray]
    ) -> Memory | None:
        """A memory of the agents that are there now; blank where none is given."""
        agents = len(moment["agents"])
        if memory is None:
            return jax.tree.map(lambda part: _grown(part, agents), self._first)
        if self._first is None:
            raise PlatoError(numpy_actor.NO_MEMORY)
        shape = (agents, self._first.hidden.shape[1])
        parts: Any = _checked(checked_memory, memory, shape)
        return Memory(*parts)

    def _moment(
        self, agents: ArrayLike, tasks: ArrayLike, options: ArrayLike
    ) -> dict[str, np.ndarray]:
        """The fields of an observation, everything seen by everyone, checked."""
        actions = self.actor.actions
        features = self.actor.noop.shape[0] - (actions if actions > 1 else 0)
        known = self.actor.agent_features
        team_rows: np.ndarray = _checked(checked_rows, "agents", agents, known)
        task_rows: np.ndarray = _checked(checked_rows, "tasks", tasks, features)
        team, everything = len(team_rows), len(task_rows)
        return {
            "agents": team_rows,
            "roster": np.ones(team, bool),
            "present": np.ones(team, bool),
            "tasks": task_rows,
            "exists": np.ones(everything, bool),
            "public": self.public,
            "sees_agents": np.ones((team, team), bool),
            "sees_tasks": np.ones((team, everything), bool),
            "options": _checked(checked_options, options, (team, everything, actions)),
        }


def load(checkpoint: str | Path) -> DeployedPolicy:
    """The policy of a checkpoint, or the last one of a run, ready to decide.

    What agents see of each other is as it was in training. A checkpoint of the first
    releases does not say how that was: there the setups that it names are asked, and
    where they cannot be, everything is seen.
    """
    return _deployed(trained_file(str(checkpoint)))


def pretrained(name: str) -> DeployedPolicy:
    """A policy that comes with PLATO, ready to decide: `plato.pretrained_names()`."""
    return _deployed(pretrained_file(name))


def export(checkpoint: str | Path, folder: str | Path) -> None:
    """Writes a policy that needs nothing but NumPy: `policy.py` and `policy.npz`.

    In that folder, `import policy; policy.load("policy.npz").decide(agents, tasks,
    options)` does what `plato.load(checkpoint).decide` does. A run stands for the last
    checkpoint of its training, `pretrained:NAME` for one that comes with PLATO.
    """
    path = trained_file(str(checkpoint))
    actor = load_actor(path)
    weights = {name: np.asarray(leaf) for name, leaf in named_leaves(actor)}
    weights["actions"] = np.asarray(actor.actions)
    weights["public"] = np.asarray(public_features(path), bool)
    weights["config"] = np.asarray(json.dumps(read_header(path)["actor"]))
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **weights)
    write_bytes(Path(folder) / "policy.npz", buffer.getvalue())
    source = Path(numpy_actor.__file__).read_text(encoding="utf-8")
    write_text(Path(folder) / "policy.py", source)


def _deployed(path: Path) -> DeployedPolicy:
    return DeployedPolicy(load_actor(path), public=public_features(path))


@jax.jit
def _log_policy(
    actor: PointerActor, seen: dict[str, Array], memory: Memory | None
) -> tuple[Float[Array, "agent choice"], Memory | None]:
    """Takes the fields of an observation: in NumPy they enter a program sooner."""
    return actor.log_policy(Observation(**seen), memory)


def _checked(check: Callable[..., Checked], *given: Any) -> Checked:
    """An argument that fits; by the NumPy actor, which knows Python's errors only."""
    try:
        return check(*given)
    except ValueError as error:
        raise PlatoError(str(error)) from None


def _roomy(moment: dict[str, np.ndarray], room: Room) -> dict[str, np.ndarray]:
    """The moment with spare rows.

    It grows before it is JAX's: there every size would be a program of its own.
    """
    agents, tasks = room
    sizes = {"agents": (agents,), "roster": (agents,), "present": (agents,)}
    sizes |= {"tasks": (tasks,), "exists": (tasks,), "public": ()}
    sizes |= {"sees_agents": (agents, agents), "sees_tasks": (agents, tasks)}
    sizes |= {"options": (agents, tasks)}
    return {name: _grown(moment[name], *size) for name, size in sizes.items()}


def _grown(array: np.ndarray, *sizes: int) -> np.ndarray:
    """An array with zeros at the end of its first axes, up to these sizes."""
    grown = np.zeros((*sizes, *array.shape[len(sizes) :]), array.dtype)
    grown[tuple(map(slice, array.shape))] = array
    return grown
