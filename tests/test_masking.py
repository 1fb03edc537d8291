"""Choices and reductions over masked sets, against the unmasked ones."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from plato.masking import joint_softmax, masked_min, masked_softmax, pick


@given(
    npst.arrays(bool, st.tuples(st.integers(1, 4), st.integers(1, 6))),
    st.integers(0, 2**32 - 1),
)
def test_pick_takes_the_nth_marked_choice(mask, draw):
    draws = jnp.full(mask.shape[0], draw, jnp.uint32)
    for row, chosen in zip(
        mask, np.asarray(pick(jnp.asarray(mask), draws)), strict=True
    ):
        marked = np.flatnonzero(row)
        assert chosen == (marked[draw % len(marked)] if len(marked) else 0)


def test_pick_is_uniform():
    mask = jnp.tile(jnp.asarray([[True, False, True, True]]), (30_000, 1))
    draws = jnp.asarray(np.random.default_rng(0).integers(0, 2**32, 30_000), jnp.uint32)
    counts = np.bincount(np.asarray(pick(mask, draws)), minlength=4)
    assert counts[1] == 0
    np.testing.assert_allclose(counts[[0, 2, 3]] / 30_000, 1 / 3, atol=0.01)


def test_the_least_of_nothing_is_infinite():
    values, mask = jnp.asarray([[3.0, 1.0], [2.0, 5.0]]), jnp.zeros((2, 2), bool)
    assert masked_min(values, mask, axis=1).tolist() == [np.inf, np.inf]
    assert masked_min(values, mask.at[0, 0].set(True), axis=1).tolist() == [3.0, np.inf]


@given(npst.arrays(bool, (3, 7)), st.integers(0, 9))
def test_a_joint_softmax_is_that_of_the_arrays_side_by_side(mask, seed):
    """Its slopes, too; where nothing is marked all is 0, and so are they."""
    random = np.random.default_rng(seed)
    scores = jnp.asarray(random.normal(size=(3, 7)) * 30, jnp.float32)
    weigh = jnp.asarray(random.normal(size=(3, 7)), jnp.float32)

    def in_parts(scores):
        parts, masks = (
            [array[:, :2], array[:, 2:3], array[:, 3:]]
            for array in (scores, jnp.asarray(mask))
        )
        return jnp.concatenate(joint_softmax(parts, masks), axis=1)

    def at_once(scores):
        return masked_softmax(scores, jnp.asarray(mask))

    np.testing.assert_allclose(in_parts(scores), at_once(scores), atol=1e-6)
    slopes = [
        jax.grad(lambda s, f=softmax: jnp.sum(weigh * f(s)))(scores)
        for softmax in (in_parts, at_once)
    ]
    np.testing.assert_allclose(*slopes, atol=1e-5)
    assert not np.asarray(slopes[0])[~mask].any()
