"""A decision process in factors: what makes an exact solution affordable.

The state is a tuple, one entry for each factor (a fire, an agent). A joint action gives
every factor a mode; in its mode a factor moves on its own, by a small matrix. So the
expectation over the next state is a contraction, factor by factor, and never a sum over
all pairs of joint states.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from jaxtyping import Array, Bool, Float, Int


@dataclass(frozen=True)
class Factor:
    """One part of the state, and how it moves in each of its modes."""

    transition: Float[np.ndarray, "mode state next"]
    reward: Float[np.ndarray, "mode state"]
    """Expected, and added over factors; minus infinity where the mode is not to be
    had in that state."""

    @property
    def states(self) -> int:
        return self.transition.shape[1]


@dataclass(frozen=True)
class Process:
    """Factors, the joint actions over them, and what ties the factors together."""

    factors: tuple[Factor, ...]
    actions: Int[np.ndarray, "action factor"]
    """The mode of each factor in each joint action; the first is always to be had."""
    start: tuple[int, ...]
    horizon: int
    settle: Callable[[Float[Array, "*state"]], Float[Array, "*state"]]
    """The expectation over what happens jointly after all factors have moved: from
    values of the states it leads to, to values of the states it starts from."""
    over: Bool[np.ndarray, "..."]
    """States in which the process has ended, of shapes that broadcast."""
    bonus: Float[np.ndarray, "..."] | None = None
    """What reaching the end is worth, by the state one comes from."""

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(factor.states for factor in self.factors)

    @property
    def states(self) -> int:
        return math.prod(self.shape)


State = TypeVar("State")


def states_from(
    start: State, successors: Callable[[State], Iterable[State]]
) -> tuple[State, ...]:
    """All states that can follow a first one, and it, in sorted order."""
    found, ahead = {start}, [start]
    while ahead:
        for state in successors(ahead.pop()):
            if state not in found:
                found.add(state)
                ahead.append(state)
    return tuple(sorted(found))  # pyright: ignore[reportArgumentType]


LARGEST_GROUP = 128
"""States of factors merged into one: matrices large enough to multiply fast."""


def groups_of(shape: Sequence[int]) -> list[list[int]]:
    """Which neighbouring factors to merge, given their numbers of states."""
    groups: list[list[int]] = []
    for index, states in enumerate(shape):
        if groups and states * math.prod(shape[i] for i in groups[-1]) <= LARGEST_GROUP:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def grouped(process: Process) -> tuple[list[Factor], Int[np.ndarray, "action group"]]:
    """The same factors, neighbours merged: fewer and larger contractions."""
    groups, actions = [], []
    for part in groups_of(process.shape):
        modes, mode_of_action = np.unique(
            process.actions[:, part], axis=0, return_inverse=True
        )
        members = [process.factors[i] for i in part]
        groups.append(_merged(members, modes))
        actions.append(mode_of_action.reshape(-1))
    return groups, np.stack(actions, axis=1).astype(np.int32)


def _merged(members: list[Factor], modes: Int[np.ndarray, "mode member"]) -> Factor:
    transitions, rewards = [], []
    for mode in modes:
        matrix, reward = np.ones((1, 1)), np.zeros(1)
        for member, chosen in zip(members, mode, strict=True):
            matrix = np.kron(matrix, member.transition[chosen])
            reward = np.add.outer(reward, member.reward[chosen]).reshape(-1)
        transitions.append(matrix)
        rewards.append(reward)
    return Factor(
        np.stack(transitions).astype(np.float32), np.stack(rewards).astype(np.float32)
    )
