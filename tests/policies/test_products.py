"""Products and scores, each in all the ways in which they may be computed."""

import jax
import jax.numpy as jnp
import numpy as np

from plato.policies.products import small_product, written_out
from plato.policies.scores import LARGEST_MIX, additive_scores

KEY = jax.random.key(1)


def test_written_out_products_are_products():
    """What an accelerator would run, beside what this machine runs."""
    left, right = jax.random.normal(KEY, (3, 4)), jnp.arange(20.0).reshape(4, 5)
    np.testing.assert_allclose(written_out(left, right), left @ right, rtol=1e-5)
    np.testing.assert_allclose(small_product(left, right), left @ right, rtol=1e-5)


def test_scores_in_parts_are_the_scores():
    """Too many pairs for one go, a number of agents that no part divides."""
    query = jax.random.normal(KEY, (37, 64))
    keys = jax.random.normal(jax.random.key(2), (800, 64))
    value = jax.random.normal(jax.random.key(3), (64, 2))
    assert query.shape[0] * keys.size > LARGEST_MIX
    q, k, v = (np.asarray(array) for array in (query, keys, value))
    expected = np.tanh(q[:, None] + k[None]) @ v
    np.testing.assert_allclose(additive_scores(query, keys, value), expected, atol=1e-4)
    few = additive_scores(query[:2], keys[:5], value)
    np.testing.assert_allclose(few, expected[:2, :5], atol=1e-4)

    def total(query):
        return additive_scores(query, keys, value).sum()

    slope = (1 - np.tanh(q[:, None] + k[None]) ** 2) * v.sum(axis=1)
    np.testing.assert_allclose(
        jax.grad(total)(query), slope.sum(axis=1), rtol=1e-3, atol=1e-2
    )
