"""Trained policies in use: any numbers of agents and tasks, NumPy in and out."""

from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import ArrayLike

from plato.errors import PlatoError
from plato.files import write_bytes, write_text
from plato.game import Observation, power_of_two
from plato.policies.checkpoint import load_actor
from plato.policies.encoders import MLP
from plato.policies.pointer import PointerActor
from plato.tensors import named_leaves


class Decision(NamedTuple):
    """What a policy makes of a moment."""

    actions: np.ndarray
    """One for each agent: 0 for NOOP, else 1 + task * actions + action."""
    probabilities: np.ndarray
    """(agents, 1 + tasks * actions): of NOOP and of every task-action."""


class DeployedPolicy:
    """Decides for whoever is there, about whatever there is to do.

    Arrays grow to the next power of two, so that an open system compiles a handful of
    programs and never meets a limit.
    """

    def __init__(self, actor: PointerActor, *, seed: int = 0) -> None:
        self.actor = actor
        self._random = np.random.default_rng(seed)

    def decide(
        self,
        agents: ArrayLike,
        tasks: ArrayLike,
        options: ArrayLike,
        *,
        greedy: bool = False,
    ) -> Decision:
        """Chooses for the agents that are present among the tasks that exist.

        `agents` and `tasks` are rows of features; `options` says for each agent and
        task (and action, where tasks have several) whether it may be chosen. Everybody
        sees everything.
        """
        if not isinstance(self.actor.encode_query, MLP):
            raise PlatoError("decide() is for policies without memory (encoder mlp).")
        seen = _everything_seen(self.actor, agents, tasks, options)
        count, choices = seen.action_mask.shape
        logs = np.asarray(_log_policy(self.actor, _grown(seen)))[:count, :choices]
        probabilities = np.exp(logs)
        if greedy:
            return Decision(probabilities.argmax(axis=1), probabilities)
        totals = np.cumsum(probabilities, axis=1)
        numbers = self._random.random(count)[:, None] * totals[:, -1:]
        return Decision((totals <= numbers).sum(axis=1), probabilities)


def load(path: str | Path) -> DeployedPolicy:
    """The policy of a checkpoint, ready to decide."""
    return DeployedPolicy(load_actor(Path(path)))


def export(checkpoint: str | Path, folder: str | Path) -> None:
    """Writes a policy that needs nothing but NumPy: `policy.py` and `policy.npz`.

    In that folder, `import policy; policy.load("policy.npz").decide(agents, tasks,
    options)` does what `plato.load(checkpoint).decide` does.
    """
    import io

    import plato.numpy_actor

    actor = load_actor(Path(checkpoint))
    if not isinstance(actor.encode_query, MLP):
        raise PlatoError("Only policies without memory (encoder mlp) can be exported.")
    buffer = io.BytesIO()
    weights = {name: np.asarray(leaf) for name, leaf in named_leaves(actor)}
    weights |= {"ego": np.asarray(actor.ego), "actions": np.asarray(actor.actions)}
    np.savez(buffer, allow_pickle=False, **weights)
    write_bytes(Path(folder) / "policy.npz", buffer.getvalue())
    source = Path(plato.numpy_actor.__file__).read_text(encoding="utf-8")
    write_text(Path(folder) / "policy.py", source)


@eqx.filter_jit
def _log_policy(actor: PointerActor, seen: Observation) -> Array:
    return actor.log_policy(seen, None)[0]


def _everything_seen(
    actor: PointerActor, agents: ArrayLike, tasks: ArrayLike, options: ArrayLike
) -> Observation:
    """The moment as an observation of NumPy arrays, checked."""
    agents, tasks = np.asarray(agents, np.float32), np.asarray(tasks, np.float32)
    options = np.asarray(options, bool)
    features = actor.noop.shape[0] - (actor.actions if actor.actions > 1 else 0)
    if agents.ndim != 2 or not len(agents):
        raise PlatoError("agents must hold a row of features for at least one agent.")
    if not tasks.size:
        tasks = tasks.reshape(0, features)
    if tasks.ndim != 2 or tasks.shape[1] != features:
        raise PlatoError(f"tasks must hold {features} features for each task.")
    shape = (len(agents), len(tasks), actor.actions)
    if options.size != np.prod(shape) or options.shape[:2] not in (shape[:2], (0,)):
        raise PlatoError(
            f"options must be {' × '.join(map(str, shape))} (agents, tasks, actions), "
            f"not {' × '.join(map(str, options.shape))}."
        )
    options = options.reshape(shape)
    return Observation(
        agents=jnp.asarray(agents),
        present=jnp.ones(len(agents), bool),
        tasks=jnp.asarray(tasks),
        exists=jnp.ones(len(tasks), bool),
        public=jnp.ones(agents.shape[1], bool),
        sees_agents=jnp.ones((len(agents), len(agents)), bool),
        sees_tasks=jnp.ones((len(agents), len(tasks)), bool),
        options=jnp.asarray(options),
    )


def _grown(seen: Observation) -> Observation:
    """The same moment with spare rows, up to powers of two."""
    agents, tasks = (power_of_two(n) for n in seen.options.shape[:2])
    sizes = {"agents": (agents, None), "present": (agents,)}
    sizes |= {"tasks": (tasks, None), "exists": (tasks,), "public": (None,)}
    sizes |= {"sees_agents": (agents, agents), "sees_tasks": (agents, tasks)}
    sizes |= {"options": (agents, tasks, None)}

    def grow(array: Array, size: tuple[int | None, ...]) -> Array:
        spare = [
            (0, (n or have) - have) for n, have in zip(size, array.shape, strict=True)
        ]
        return jnp.pad(array, spare)

    return Observation(**{n: grow(getattr(seen, n), size) for n, size in sizes.items()})
