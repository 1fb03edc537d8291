"""Backward induction in factors against plain dynamic programming over joint states."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from plato.exact.induction import Size, solve
from plato.exact.process import Factor, Process, groups_of


def random_process(seed: int, *, bonus: bool) -> Process:
    draws = np.random.default_rng(seed)
    shape, modes, actions = (3, 2, 4), (2, 3, 2), 7
    factors = []
    for states, ways in zip(shape, modes, strict=True):
        transition = draws.random((ways, states, states))
        reward = draws.normal(size=(ways, states))
        reward[1, 0] = -np.inf  # a way that is not always open
        factors.append(Factor(transition / transition.sum(-1, keepdims=True), reward))
    chosen = np.stack([draws.integers(0, m, actions) for m in modes], axis=1)
    chosen[0] = 0  # and one that is
    mix = draws.random((24, 24))
    mix /= mix.sum(1, keepdims=True)

    def settle(values):
        return (mix.astype(np.float32) @ values.reshape(-1)).reshape(values.shape)

    return Process(
        factors=tuple(factors),
        actions=chosen.astype(np.int32),
        start=(1, 0, 2),
        horizon=5,
        settle=settle,
        over=draws.random(shape) < 0.2,
        bonus=draws.random((3, 1, 1)) if bonus else None,
    )


def plainly(process: Process) -> tuple[float, np.ndarray]:
    """One loop for everything, over joint states."""
    states = list(itertools.product(*map(range, process.shape)))
    mix = np.asarray(
        [process.settle(jnp.asarray(row)) for row in np.eye(24, dtype=np.float32)]
    ).T
    mix = mix.reshape(24, 24)
    over = np.broadcast_to(process.over, process.shape).reshape(-1)
    value, table = np.zeros(24), np.zeros((process.horizon, 24), int)
    for time in reversed(range(process.horizon)):
        ahead = mix @ np.where(over, 0, value)
        ends = mix @ over.astype(float)
        new = np.full(24, -np.inf)
        for s, state in enumerate(states):
            for a, action in enumerate(process.actions):
                reward, row = 0.0, np.ones(1)
                for factor, mode, i in zip(process.factors, action, state, strict=True):
                    reward += factor.reward[mode, i]
                    row = np.kron(row, factor.transition[mode, i])
                total = reward + row @ ahead
                if process.bonus is not None:
                    total += process.bonus[state[0], 0, 0] * (row @ ends)
                if total > new[s] + 1e-9:
                    new[s], table[time, s] = total, a
        value = new
    return value[states.index(process.start)], table


@pytest.mark.parametrize("bonus", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_it_agrees_with_plain_dynamic_programming(monkeypatch, seed, bonus):
    process = random_process(seed, bonus=bonus)
    value, table = plainly(process)
    for largest in (1, 6, 128):  # however factors are grouped
        monkeypatch.setattr("plato.exact.process.LARGEST_GROUP", largest)
        done = []
        solution = solve(process, done.append)
        assert solution.value == pytest.approx(value, abs=1e-4)
        np.testing.assert_array_equal(solution.table, table)
        assert done == [1, 2, 3, 4, 5]


def test_factors_are_grouped_in_order_and_within_the_limit():
    assert groups_of((5,) * 6 + (3,) * 6) == [
        [0, 1, 2],
        [3, 4, 5],
        [6, 7, 8, 9],
        [10, 11],
    ]
    assert groups_of((500, 2, 2)) == [[0], [1, 2]]


def test_the_size_says_what_the_table_takes():
    size = Size(shape=(5,) * 6 + (3,) * 6, actions=900, horizon=100, widest=0)
    assert size.states == 11_390_625
    assert size.memory > 100 * size.states * 2  # two bytes count 900 actions
    assert Size((5, 3), 200, 100, 0).memory < 100 * 15 * 2 + 200 * 200 * 2 + 4 * 8 * 15
