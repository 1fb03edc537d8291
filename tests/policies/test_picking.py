"""Picking rows by fixed numbers: as by an index, gradients included."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plato.policies.picking import picked


def by_index(rows, which):
    return rows[which]


@given(st.lists(st.integers(0, 4), max_size=12), st.booleans())
def test_rows_and_their_gradients_are_those_of_an_index(numbers, in_pairs):
    which = np.array(numbers, int)
    if in_pairs:
        which = which[: len(which) // 2 * 2].reshape(-1, 2)
    random = np.random.default_rng(len(numbers))
    rows = jnp.asarray(random.normal(size=(5, 2, 3)), jnp.float32)
    weight = jnp.asarray(random.normal(size=(*which.shape, 2, 3)), jnp.float32)

    def worth(pick):
        return jax.value_and_grad(lambda rows: (weight * pick(rows, which)).sum())

    np.testing.assert_array_equal(picked(rows, which), rows[which])
    for own, expected in zip(worth(picked)(rows), worth(by_index)(rows), strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("pick", [picked, by_index])
def test_many_arrays_at_once(pick):
    rows, which = jnp.arange(24.0).reshape(2, 4, 3), np.array([3, 3, 0])
    slope = jax.vmap(jax.grad(lambda rows: pick(rows, which).sum()))(rows)
    np.testing.assert_array_equal(slope[:, :, 0], [[1, 0, 0, 2]] * 2)
