"""Advantages against a loop in plain NumPy, and cases worked out by hand."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plato.learners.gae import advantages


def by_loop(reward, value, next_value, terminated, done, gamma, lam):
    result, later = np.zeros_like(reward), 0.0
    for t in reversed(range(len(reward))):
        future = 0.0 if terminated[t] else next_value[t]
        delta = reward[t] + gamma * future - value[t]
        later = delta + (0.0 if done[t] else gamma * lam * later)
        result[t] = later
    return result


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_agrees_with_a_loop(seed, steps):
    random = np.random.default_rng(seed)
    reward, value, following = random.normal(size=(3, steps)).astype(np.float32)
    terminated = random.random(steps) < 0.2
    done = terminated | (random.random(steps) < 0.2)
    arrays = (reward, value, following, terminated, done)
    found = advantages(*(jnp.asarray(a) for a in arrays), gamma=0.9, lam=0.8)
    expected = by_loop(*arrays, gamma=0.9, lam=0.8)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("terminated", "expected"),
    # Two steps of reward 1, values 2 and 3, then 10 beyond. gamma 0.5, lambda 1:
    # last: 1 + 0.5 * 10 - 3 = 3 (or 1 - 3 = -2); first: 1 + 1.5 - 2 + 0.5 * last.
    [(False, [2.0, 3.0]), (True, [-0.5, -2.0])],
)
def test_a_time_limit_counts_on_what_lies_beyond(terminated, expected):
    result = advantages(
        jnp.asarray([1.0, 1.0]),
        jnp.asarray([2.0, 3.0]),
        jnp.asarray([3.0, 10.0]),
        jnp.asarray([False, terminated]),
        jnp.asarray([False, True]),
        0.5,
        1.0,
    )
    assert result.tolist() == expected


def test_nothing_flows_over_from_the_next_episode():
    done = jnp.asarray([True, False])
    quiet, loud = (
        advantages(
            jnp.asarray([0.0, reward]),
            jnp.zeros(2),
            jnp.zeros(2),
            done,
            done,
            0.99,
            0.95,
        )
        for reward in (0.0, 100.0)
    )
    assert quiet[0] == loud[0] == 0
