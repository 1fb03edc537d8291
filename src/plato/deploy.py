"""Trained policies in use: any numbers of agents and tasks, NumPy in and out."""

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import ArrayLike

from plato import numpy_actor
from plato.errors import PlatoError
from plato.files import write_bytes, write_text
from plato.game import Observation, power_of_two
from plato.numpy_actor import checked_mask, checked_options, checked_rows
from plato.policies.checkpoint import load_actor, public_features, trained_file
from plato.policies.pointer import Memory, PointerActor
from plato.policies.pretrained import pretrained_file
from plato.tensors import named_leaves, read_header


class Decision(NamedTuple):
    """What a policy makes of a moment."""

    actions: np.ndarray
    """One for each agent: 0 for NOOP, else 1 + task * actions + action."""
    probabilities: np.ndarray
    """(agents, 1 + tasks * actions): of NOOP and of every task-action."""
    memory: Memory | None
    """To be given with the next decision, a row for each agent, where the policy
    remembers (encoder lstm); otherwise None."""


class DeployedPolicy:
    """Decides for whoever is there, about whatever there is to do.

    Arrays grow to the next power of two, so that an open system compiles a handful of
    programs and never meets a limit.

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

        `agents` and `tasks` are rows of features; `options` says for each agent and
        task (and action, where tasks have several) whether it may be chosen; agents
        that are not present, and tasks that an agent does not see, are never offered.

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
        count, choices = len(moment["agents"]), 1 + moment["options"][0].size
        roomy = _grown(moment)
        logs, later = _log_policy(self.actor, roomy, self._memory(memory, count, roomy))
        probabilities = np.exp(np.asarray(logs)[:count, :choices])
        later = jax.tree.map(lambda leaf: np.asarray(leaf)[:count], later)
        if greedy:
            return Decision(probabilities.argmax(axis=1), probabilities, later)
        totals = np.cumsum(probabilities, axis=1)
        numbers = self._random.random(count)[:, None] * totals[:, -1:]
        return Decision((totals <= numbers).sum(axis=1), probabilities, later)

    def _memory(
        self, memory: Sequence[ArrayLike] | None, agents: int, roomy: Observation
    ) -> Memory | None:
        blank = self.actor.start(roomy.agents.shape[0])
        if memory is None or blank is None:
            return blank
        expected = [(agents, *part.shape[1:]) for part in blank]
        found = [np.shape(part) for part in memory]
        if found != expected:
            raise PlatoError(
                f"memory must hold a row for each of the {agents} agents, "
                f"{expected} (hidden, cell, present), not "
                f"{found}."
            )
        grown = [
            np.pad(np.asarray(part, new.dtype), _spare(part, new.shape))
            for part, new in zip(memory, blank, strict=True)
        ]
        return Memory(*map(jnp.asarray, grown))

    def _moment(
        self, agents: ArrayLike, tasks: ArrayLike, options: ArrayLike
    ) -> dict[str, np.ndarray]:
        """The fields of an observation, everything seen by everyone, checked."""
        actions = self.actor.actions
        features = self.actor.noop.shape[0] - (actions if actions > 1 else 0)
        agents = _checked(checked_rows, "agents", agents, self.actor.agent_features)
        tasks = _checked(checked_rows, "tasks", tasks, features)
        if not len(agents):
            raise PlatoError("agents must hold the features of at least one agent.")
        team, everything = len(agents), len(tasks)
        return {
            "agents": agents,
            "roster": np.ones(team, bool),
            "present": np.ones(team, bool),
            "tasks": tasks,
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


@eqx.filter_jit
def _log_policy(
    actor: PointerActor, seen: Observation, memory: Memory | None
) -> tuple[Array, Memory | None]:
    return actor.log_policy(seen, memory)


def _checked(check: Callable[..., np.ndarray], *given: Any) -> np.ndarray:
    """An argument that fits; by the NumPy actor, which knows Python's errors only."""
    try:
        return check(*given)
    except ValueError as error:
        raise PlatoError(str(error)) from None


def _grown(moment: dict[str, np.ndarray]) -> Observation:
    """The moment with spare rows, up to powers of two.

    It grows before it is JAX's: there every size would be a program of its own.
    """
    agents, tasks = (power_of_two(n) for n in moment["options"].shape[:2])
    sizes = {"agents": (agents, None), "roster": (agents,), "present": (agents,)}
    sizes |= {"tasks": (tasks, None), "exists": (tasks,), "public": (None,)}
    sizes |= {"sees_agents": (agents, agents), "sees_tasks": (agents, tasks)}
    sizes |= {"options": (agents, tasks, None)}
    return Observation(
        **{
            name: jnp.asarray(np.pad(moment[name], _spare(moment[name], size)))
            for name, size in sizes.items()
        }
    )


def _spare(array: ArrayLike, size: Sequence[int | None]) -> list[tuple[int, int]]:
    """What an array lacks at the end of each axis."""
    have = np.shape(array)
    return [(0, (n or has) - has) for n, has in zip(size, have, strict=True)]
