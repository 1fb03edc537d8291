"""Random moments of an open game: any numbers of agents, tasks and actions.

They are made in NumPy: JAX would compile every operation for every shape.
"""

from typing import Any

import jax
import numpy as np
from hypothesis import strategies as st

from plato.game import Features, Observation
from plato.policies.config import PAPER_FORM, ActorConfig

FEATURES = Features(agent=3, task=2, actions=1)
ROWS = (6, 7)
"""Rows of agents and tasks in which all of these moments fit."""

VARIANTS = [
    ActorConfig(hidden=8),
    ActorConfig(hidden=8, away="removed"),
    ActorConfig(hidden=8, scorer="dot", depth=2),
    ActorConfig(hidden=8, encoder="lstm", heads=2),
    ActorConfig(hidden=8, **PAPER_FORM),
    ActorConfig(hidden=8, context="pointer"),
    ActorConfig(hidden=8, context="statistics", ego=False),
    ActorConfig(
        hidden=8, query="statistics", context="statistics", scorer="dot", away="removed"
    ),
    ActorConfig(
        hidden=8, encoder="lstm", scorer="dot", query="statistics", context="pointer"
    ),
    ActorConfig(hidden=8, encoder="lstm", **{**PAPER_FORM, "context": "statistics"}),
    ActorConfig(
        hidden=8,
        scorer="dot",
        ego=False,
        away="removed",
        context="pointer",
        heads=2,
        depth=2,
    ),
]
"""Every two values of the actor's switches together, in few combinations."""
actor_configs = st.sampled_from(VARIANTS)


@st.composite
def moments(
    draw,
    min_tasks: int = 0,
    full_view: bool = False,
    away: bool = False,
    actions: int = 1,
) -> Observation:
    """A moment without spare rows: every task exists, and everyone is present.

    With `away`, some agents may be away.
    """
    agents, tasks = draw(st.integers(1, 5)), draw(st.integers(min_tasks, 5))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sees = np.ones((agents, tasks), bool)
    knows = np.ones((agents, agents), bool)
    if not full_view:
        sees = random.random((agents, tasks)) < 0.7
        knows = (random.random((agents, agents)) < 0.7) | np.eye(agents, dtype=bool)
    present = random.random(agents) < (0.6 if away else 2)
    options = (random.random((agents, tasks, actions)) < 0.6) & sees[:, :, None]
    options &= present[:, None, None]
    return observation(
        agents=random.normal(size=(agents, 3)).astype(np.float32),
        roster=np.ones(agents, bool),
        present=present,
        tasks=random.normal(size=(tasks, 2)).astype(np.float32),
        exists=np.ones(tasks, bool),
        public=np.asarray([True, bool(random.integers(2)), True]),
        sees_agents=knows,
        sees_tasks=sees,
        options=options,
    )


def observation(**arrays: np.ndarray) -> Observation:
    """What is seen, from arrays of NumPy."""
    return Observation(**jax.device_put(arrays))


def arrays_of(seen: Observation) -> dict[str, Any]:
    """The other way round."""
    return jax.device_get(vars(seen))


def changed(seen: Observation, **arrays: np.ndarray) -> Observation:
    return observation(**arrays_of(seen) | arrays)


def without(seen: Observation, agent: int) -> Observation:
    """The same moment with an agent away."""
    others = np.arange(seen.present.shape[0]) != agent
    return changed(seen, present=np.asarray(seen.present) & others)


def offered(seen: Observation) -> np.ndarray:
    """Its `action_mask`, computed in arrays that fit all moments: one compilation."""
    agents, tasks, actions = seen.options.shape
    mask = np.asarray(_mask(with_spare_rows(seen, *ROWS, seed=0)))
    return mask[:agents, : 1 + tasks * actions]


_mask = jax.jit(lambda seen: seen.action_mask)


def rearranged(seen: Observation, agents, tasks) -> Observation:
    """The same moment with its rows in another order (or with some left out)."""
    arrays = arrays_of(seen)
    return observation(
        agents=arrays["agents"][agents],
        roster=arrays["roster"][agents],
        present=arrays["present"][agents],
        tasks=arrays["tasks"][tasks],
        exists=arrays["exists"][tasks],
        public=arrays["public"],
        sees_agents=arrays["sees_agents"][agents][:, agents],
        sees_tasks=arrays["sees_tasks"][agents][:, tasks],
        options=arrays["options"][agents][:, tasks],
    )


def with_spare_rows(
    seen: Observation, agents: int, tasks: int, seed: int
) -> Observation:
    """The same moment with masked rows of rubbish at the end."""
    random = np.random.default_rng(seed)
    arrays = arrays_of(seen)

    def grow(name, sizes, rubbish):
        array = arrays[name]
        shape = [size or have for size, have in zip(sizes, array.shape, strict=True)]
        full = rubbish(shape)
        full[tuple(slice(have) for have in array.shape)] = array
        return full.astype(array.dtype)

    def any_number(shape):
        return 100 * random.normal(size=shape)

    def any_flag(shape):
        return random.random(shape) < 0.5

    def never(shape):
        return np.zeros(shape, bool)

    return observation(
        agents=grow("agents", (agents, None), any_number),
        roster=grow("roster", (agents,), never),
        present=grow("present", (agents,), never),
        tasks=grow("tasks", (tasks, None), any_number),
        exists=grow("exists", (tasks,), never),
        public=arrays["public"],
        sees_agents=grow("sees_agents", (agents, agents), any_flag),
        sees_tasks=grow("sees_tasks", (agents, tasks), any_flag),
        options=grow("options", (agents, tasks, None), never),
    )
