"""Choices, statistics and softmaxes over sets stored as masked arrays.

Every function is right for an empty set: no division by zero, no NaN, not in the
gradient either, and nothing depends on how many masked rows there are.
"""

from collections.abc import Sequence
from functools import reduce

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32


def masked_min(
    values: Float[Array, " *row"], mask: Bool[Array, " *row"], axis: int = -1
) -> Float[Array, " *rest"]:
    """The least value of the set; +inf for an empty one."""
    return jnp.min(values, axis=axis, where=mask, initial=jnp.inf)


def masked_mean(
    values: Float[Array, " *row"], mask: Bool[Array, " *row"]
) -> Float[Array, ""]:
    """The mean over everything marked; 0 for an empty set."""
    total = jnp.sum(jnp.where(mask, values, 0.0))
    return total / jnp.maximum(jnp.sum(mask), 1)


def set_statistics(
    rows: Float[Array, "row feat"], mask: Bool[Array, " row"]
) -> Float[Array, " 4*feat"]:
    """Mean, variance, minimum and maximum of each feature; 0 for an empty set."""
    marked = mask[:, None]
    count = jnp.maximum(jnp.sum(mask), 1)
    mean = jnp.sum(jnp.where(marked, rows, 0.0), axis=0) / count
    offset = jnp.where(marked, rows - mean[None, :], 0.0)
    variance = jnp.sum(offset**2, axis=0) / count
    low = jnp.min(jnp.where(marked, rows, jnp.inf), axis=0)
    high = jnp.max(jnp.where(marked, rows, -jnp.inf), axis=0)
    statistics = jnp.concatenate([mean, variance, low, high])
    return jnp.where(mask.any(), statistics, 0.0)


def masked_softmax(
    scores: Float[Array, "*row choice"], mask: Bool[Array, "*row choice"]
) -> Float[Array, "*row choice"]:
    """A softmax over the marked choices; all 0 where none is."""
    lowest = jnp.finfo(scores.dtype).min
    peak = jnp.max(jnp.where(mask, scores, lowest), axis=-1, keepdims=True)
    # Masked scores are replaced before exp, so that their gradient is 0 and not NaN.
    weights = jnp.where(mask, jnp.exp(jnp.where(mask, scores - peak, 0.0)), 0.0)
    return weights / jnp.maximum(jnp.sum(weights, axis=-1, keepdims=True), 1e-30)


def joint_softmax(
    scores: Sequence[Float[Array, "..."]], masks: Sequence[Bool[Array, "..."]]
) -> list[Float[Array, "..."]]:
    """One softmax over the marked choices of several arrays, which are never joined.

    Choices are along the last axis; masks are broadcast along the others.
    """
    lowest = jnp.finfo(scores[0].dtype).min
    marked = list(zip(scores, masks, strict=True))
    peaks = [
        jnp.max(jnp.where(m, s, lowest), axis=-1, keepdims=True) for s, m in marked
    ]
    # Whatever is subtracted changes nothing, so it needs no gradient.
    peak = jax.lax.stop_gradient(reduce(jnp.maximum, peaks))
    weights = [
        jnp.where(m, jnp.exp(jnp.where(m, s - peak, 0.0)), 0.0) for s, m in marked
    ]
    total = sum(jnp.sum(each, axis=-1, keepdims=True) for each in weights)
    return [each / jnp.maximum(total, 1e-30) for each in weights]


def masked_log_softmax(
    scores: Float[Array, "*row choice"], mask: Bool[Array, "*row choice"]
) -> Float[Array, "*row choice"]:
    """Log-probabilities of the marked choices; the least float for the others."""
    lowest = jnp.finfo(scores.dtype).min
    peak = jnp.max(jnp.where(mask, scores, lowest), axis=-1, keepdims=True)
    shifted = jnp.where(mask, scores - peak, 0.0)
    total = jnp.sum(jnp.where(mask, jnp.exp(shifted), 0.0), axis=-1, keepdims=True)
    return jnp.where(mask, shifted - jnp.log(jnp.maximum(total, 1e-30)), lowest)


def entropy(
    log_probabilities: Float[Array, "*row choice"], mask: Bool[Array, "*row choice"]
) -> Float[Array, " *row"]:
    """The entropy of masked categorical distributions, in nats."""
    logs = jnp.where(mask, log_probabilities, 0.0)
    return -jnp.sum(jnp.where(mask, jnp.exp(logs) * logs, 0.0), axis=-1)


def divergence(
    log_probabilities: Float[Array, "*row choice"],
    others: Float[Array, "*row choice"],
    mask: Bool[Array, "*row choice"],
) -> Float[Array, " *row"]:
    """How far others are from masked categorical distributions (Kullback-Leibler)."""
    apart = jnp.where(mask, log_probabilities - others, 0.0)
    return jnp.sum(jnp.exp(log_probabilities) * apart, axis=-1)


def chosen(
    values: Float[Array, "*row choice"], actions: Int[Array, " *row"]
) -> Float[Array, " *row"]:
    """The value of each row's action, with a gradient that scatters nothing."""
    choices = jax.lax.broadcasted_iota(actions.dtype, values.shape, values.ndim - 1)
    return jnp.sum(jnp.where(choices == actions[..., None], values, 0.0), axis=-1)


def sample(
    probabilities: Float[Array, "row choice"], numbers: Float[Array, " row"]
) -> Int[Array, " row"]:
    """One choice for each row by inverting its cumulative distribution.

    One number a row, uniform on [0, 1), whatever the number of choices: masked ones
    change nothing. Choices without probability are never taken.
    """
    cumulative = jnp.cumsum(probabilities, axis=1)
    # Rounding may leave the sum a little below or above 1: scale the number instead.
    reached = cumulative <= (numbers * cumulative[:, -1])[:, None]
    place = jnp.sum(reached, axis=1, dtype=jnp.int32)
    last = jnp.max(
        jnp.where(probabilities > 0, jnp.arange(probabilities.shape[1])[None, :], 0),
        axis=1,
    )
    return jnp.minimum(place, last.astype(jnp.int32))


def pick(
    mask: Bool[Array, "row choice"], draws: UInt32[Array, " row"]
) -> Int[Array, " row"]:
    """For each row the (draw mod n)-th of its n marked choices; 0 where none is."""
    marked = jnp.cumsum(mask, axis=1, dtype=jnp.uint32)
    rank = draws % jnp.maximum(marked[:, -1], 1)
    # Choices before the one sought have at most `rank` marked ones up to themselves.
    place = jnp.sum(marked <= rank[:, None], axis=1, dtype=jnp.int32)
    return jnp.where(mask.any(axis=1), place, 0)
