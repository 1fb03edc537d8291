"""Random moments of an open game: any numbers of agents, tasks and actions."""

import jax.numpy as jnp
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
    draw, min_tasks: int = 0, full_view: bool = False, away: bool = False
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
    options = (random.random((agents, tasks, 1)) < 0.6) & sees[:, :, None]
    options &= present[:, None, None]
    return Observation(
        agents=jnp.asarray(random.normal(size=(agents, 3)), jnp.float32),
        roster=jnp.ones(agents, bool),
        present=jnp.asarray(present),
        tasks=jnp.asarray(random.normal(size=(tasks, 2)), jnp.float32),
        exists=jnp.ones(tasks, bool),
        public=jnp.asarray([True, bool(random.integers(2)), True]),
        sees_agents=jnp.asarray(knows),
        sees_tasks=jnp.asarray(sees),
        options=jnp.asarray(options),
    )


def rearranged(seen: Observation, agents, tasks) -> Observation:
    """The same moment with its rows in another order (or with some left out)."""
    return Observation(
        agents=seen.agents[agents],
        roster=seen.roster[agents],
        present=seen.present[agents],
        tasks=seen.tasks[tasks],
        exists=seen.exists[tasks],
        public=seen.public,
        sees_agents=seen.sees_agents[agents][:, agents],
        sees_tasks=seen.sees_tasks[agents][:, tasks],
        options=seen.options[agents][:, tasks],
    )


def with_spare_rows(
    seen: Observation, agents: int, tasks: int, seed: int
) -> Observation:
    """The same moment with masked rows of rubbish at the end."""
    random = np.random.default_rng(seed)

    def grow(array, sizes, rubbish):
        shape = [size or have for size, have in zip(sizes, array.shape, strict=True)]
        full = rubbish(shape)
        full[tuple(slice(have) for have in array.shape)] = array
        return jnp.asarray(full.astype(np.asarray(array).dtype))

    def any_number(shape):
        return 100 * random.normal(size=shape)

    def any_flag(shape):
        return random.random(shape) < 0.5

    def never(shape):
        return np.zeros(shape, bool)

    return Observation(
        agents=grow(seen.agents, (agents, None), any_number),
        roster=grow(seen.roster, (agents,), never),
        present=grow(seen.present, (agents,), never),
        tasks=grow(seen.tasks, (tasks, None), any_number),
        exists=grow(seen.exists, (tasks,), never),
        public=seen.public,
        sees_agents=grow(seen.sees_agents, (agents, agents), any_flag),
        sees_tasks=grow(seen.sees_tasks, (agents, tasks), any_flag),
        options=grow(seen.options, (agents, tasks, None), never),
    )
