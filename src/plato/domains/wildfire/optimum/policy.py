"""The optimal team in a wildfire that is small enough to solve exactly."""

import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt

import plato
from plato.configuration import from_mapping, to_mapping
from plato.domains.wildfire.config import WildfireConfig
from plato.domains.wildfire.dynamics import WildfireState
from plato.domains.wildfire.optimum.model import Model, model_of, size_of
from plato.domains.wildfire.oracle import Oracle
from plato.errors import PlatoError
from plato.exact.induction import Size, Solution, index_type, solve
from plato.tensors import read_header, read_tree, write_tree

KIND = "optimal policy"


class OptimalPolicy(Oracle):
    """Looks up what is best for the team. An oracle: it knows the state and the time.

    It is optimal for the noise of the rules, independent from step to step.
    """

    table: UInt[Array, "time state"]
    actions: Int[Array, "action agent"]
    cells: Float[Array, "cell cell_state 2"]
    """(intensity, fuel) of each cell's states, in the order of the table."""
    agents: Float[Array, "agent agent_state 3"]
    """(suppressant, capacity, equipment), likewise."""
    strides: Int[Array, " factor"]
    value: Float[Array, ""]
    """The expected return of the team."""
    knows_fuel: bool = eqx.field(static=True)
    """Whether fuel is part of the state; it is not where it cannot run out."""

    def joint_action(self, state: WildfireState) -> Int[Array, " agent"]:
        return self.actions[self.table[state.time, self.index(state)]]

    def index(self, state: WildfireState) -> Int[Array, ""]:
        """The place of a state in the table."""
        rows = self.cells.shape[0]
        fuel = state.fuel[:rows] if self.knows_fuel else jnp.zeros(rows)
        cells = jnp.stack([state.intensity[:rows], fuel], axis=1, dtype=jnp.float32)
        team = self.agents.shape[0]
        parts = (state.suppressant, state.capacity, state.equipment)
        agents = jnp.stack([part[:team] for part in parts], axis=1, dtype=jnp.float32)
        places = [_place(self.cells, cells), _place(self.agents, agents)]
        return jnp.sum(jnp.concatenate(places) * self.strides)


def _place(
    states: Float[Array, "part state size"], now: Float[Array, "part size"]
) -> Int[Array, " part"]:
    """Which of its states each part is in."""
    return jnp.argmax((states == now[:, None, :]).all(axis=2), axis=1)


def solve_exactly(
    config: WildfireConfig,
    *,
    memory: int | None = None,
    report: Callable[[int], None] = lambda steps: None,
) -> OptimalPolicy:
    """Solves a configuration; refused if it takes more than so many bytes of memory.

    The limit is what the machine has, if none is given. `report` hears of every step
    of the horizon that is done.
    """
    refuse_what_is_too_large(size_of(config), memory or memory_here())
    model = model_of(config)
    return policy_of(model, solve(model.process, report))


def refuse_what_is_too_large(size: Size, limit: int) -> None:
    """Better said now than found out by the machine."""
    if size.memory > limit:
        raise PlatoError(
            f"This configuration has {size.states:.3g} states and {size.actions:.3g} "
            f"joint actions; solving it takes about {size.memory / 1e9:.3g} GB, and "
            f"{limit / 1e9:.3g} GB are allowed: try fewer cells, agents or steps."
        )


def memory_here() -> int:
    """Bytes that JAX's device has; on a CPU, the machine."""
    stats = jax.devices()[0].memory_stats() or {}
    return stats.get("bytes_limit") or os.sysconf("SC_PAGE_SIZE") * os.sysconf(
        "SC_PHYS_PAGES"
    )


def policy_of(model: Model, solution: Solution) -> OptimalPolicy:
    shape = model.process.shape
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    return OptimalPolicy(
        table=jnp.asarray(solution.table),
        actions=jnp.asarray(model.actions),
        cells=_rows(
            [
                [(c.intensity, c.fuel * model.knows_fuel) for c in states]
                for states in model.cells
            ],
            2,
        ),
        agents=_rows(model.agents, 3),
        strides=jnp.asarray(strides, jnp.int32),
        value=jnp.asarray(solution.value, jnp.float32),
        knows_fuel=model.knows_fuel,
    )


def _rows(parts: Sequence[Sequence[tuple[float, ...]]], size: int) -> Array:
    """The states of parts that have different numbers of them, padded with NaN."""
    most = max((len(states) for states in parts), default=0)
    rows = np.full((len(parts), most, size), np.nan, np.float32)
    for row, states in zip(rows, parts, strict=True):
        row[: len(states)] = states
    return jnp.asarray(rows)


def save_optimal(path: Path, policy: OptimalPolicy, config: WildfireConfig) -> None:
    """Writes a solution, with the configuration that it solves."""
    header = {
        "kind": KIND,
        "version": plato.__version__,
        "config": to_mapping(config),
        "value": float(policy.value),
    }
    write_tree(path, policy.table, header)


def load_optimal(path: Path, config: WildfireConfig) -> OptimalPolicy:
    """Reads a solution back; refused if it solves another configuration."""
    header = read_header(path)
    if header.get("kind") != KIND:
        raise PlatoError(f"{path}: holds a {header.get('kind')!r}, not a solution.")
    if from_mapping(WildfireConfig, header["config"]) != config:
        raise PlatoError(f"{path}: solves another configuration than the one to play.")
    model = model_of(config)
    actions = len(model.process.actions)
    shape = (config.max_steps, model.process.states)
    like: Any = jax.ShapeDtypeStruct(shape, index_type(actions))
    return policy_of(model, Solution(header["value"], read_tree(path, like)))
