"""Backward induction over a whole factored state space: the exact optimum."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt

from plato.exact.process import Process, grouped, groups_of


@dataclass(frozen=True)
class Solution:
    """The optimal value of the start, and an optimal action for every moment."""

    value: float
    table: UInt[np.ndarray, "time state"]
    """The best joint action by steps done and state (row-major over the factors)."""


@dataclass(frozen=True)
class Size:
    """What solving a process takes, known before anything is built."""

    shape: tuple[int, ...]
    """States of each factor."""
    actions: int
    horizon: int
    widest: int
    """States at the widest point of `Process.settle`."""

    @property
    def states(self) -> int:
        return math.prod(self.shape)

    @property
    def memory(self) -> int:
        """Bytes, about: the tensors alive at once, the table, the list of actions."""
        tensors = 4 * (8 * self.states + 3 * self.widest)
        table = self.horizon * self.states * index_type(self.actions).itemsize
        return tensors + table + 200 * self.actions * len(self.shape)

    @property
    def operations(self) -> float:
        """Floating-point operations, about."""
        rows = sum(math.prod(self.shape[i] for i in g) for g in groups_of(self.shape))
        return 2.0 * self.states * rows * self.actions * self.horizon


def solve(
    process: Process, report: Callable[[int], None] = lambda steps: None
) -> Solution:
    """Values from the last step back to the first; `report` hears of each step done."""
    groups, modes = grouped(process)
    shape = process.shape
    kind = index_type(len(modes))
    settle = jax.jit(partial(_continuation, process))
    back_up = jax.jit(partial(_back_up, kind))
    arrays = [
        (jnp.asarray(group.transition), jnp.asarray(group.reward)) for group in groups
    ]
    bonus = None
    if process.bonus is not None:
        sizes = [group.states for group in groups]
        bonus = jnp.broadcast_to(jnp.asarray(process.bonus, jnp.float32), shape)
        bonus = bonus.reshape(sizes)
    value = jnp.zeros(shape)
    table = np.empty((process.horizon, math.prod(shape)), kind)
    for time in reversed(range(process.horizon)):
        following = settle(value)
        value, best = back_up(arrays, jnp.asarray(modes), following, bonus)
        table[time] = np.asarray(best).reshape(-1)
        value = value.reshape(shape)
        report(process.horizon - time)
    return Solution(float(value[process.start]), table)


def _continuation(
    process: Process, value: Float[Array, "*state"]
) -> Float[Array, "channel *state"]:
    """Values before the joint part of a step; with a bonus, the chance to end, too."""
    over = jnp.broadcast_to(jnp.asarray(process.over), value.shape)
    channels = [process.settle(jnp.where(over, 0.0, value))]
    if process.bonus is not None:
        channels.append(process.settle(over.astype(jnp.float32)))
    return jnp.stack(channels)


def _back_up(
    kind: np.dtype,
    groups: list[tuple[Array, Array]],
    modes: Int[Array, "action group"],
    following: Float[Array, "channel *state"],
    bonus: Array | None,
) -> tuple[Array, Array]:
    """The best joint action of every state, one action after the other."""
    sizes = [reward.shape[1] for _, reward in groups]

    def action_value(mode: Int[Array, " group"]) -> Float[Array, "*group"]:
        chosen = [(p[m], r[m]) for (p, r), m in zip(groups, mode, strict=True)]
        channels = [_expected(part, [p for p, _ in chosen]) for part in following]
        value = channels[0].reshape(sizes)
        if bonus is not None:
            value += bonus * channels[1].reshape(sizes)
        for axis, (_, reward) in enumerate(chosen):
            across = [1] * len(sizes)
            across[axis] = sizes[axis]
            value += jnp.broadcast_to(reward.reshape(across), value.shape)
        return value

    def compare(best, candidate):
        value, action = best
        index, mode = candidate
        other = action_value(mode)
        better = other > value
        return (jnp.where(better, other, value), jnp.where(better, index, action)), None

    first = action_value(modes[0]), jnp.zeros(sizes, kind)
    rest = jnp.arange(1, len(modes), dtype=kind), modes[1:]
    best, _ = jax.lax.scan(compare, first, rest)
    return best


def _expected(
    values: Float[Array, "*state"], matrices: list[Float[Array, "_ _"]]
) -> Float[Array, "rest last"]:
    """Contracts every group in turn; each turn moves its axis to the end."""
    for matrix in matrices:
        rows = values.reshape(matrix.shape[1], -1)
        values = jax.lax.dot_general(
            rows, matrix, (((0,), (1,)), ((), ())), precision=jax.lax.Precision.HIGHEST
        )
    return values


def index_type(actions: int) -> np.dtype:
    """The smallest integers that count so many actions."""
    return np.min_scalar_type(actions - 1)
