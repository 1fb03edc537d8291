"""The networks against dense formulas and unpadded computations in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as npst

from moments import FEATURES, ROWS, moments, with_spare_rows
from plato.masking import (
    entropy,
    masked_log_softmax,
    masked_mean,
    masked_softmax,
    sample,
    set_statistics,
)
from plato.policies.config import ActorConfig
from plato.policies.critic import GraphCritic

CRITIC = GraphCritic.create(
    ActorConfig(hidden=8, away="removed"), FEATURES, key=jax.random.key(1)
)
rows_of_scores = npst.arrays(
    np.float32, (3, 5), elements={"min_value": -5, "max_value": 5}
)
masks = npst.arrays(bool, (3, 5))


def mlp(layers, x):
    for layer in layers:
        x = np.maximum(x @ np.asarray(layer.weight) + np.asarray(layer.bias), 0)
    return x


@given(moments())
def test_the_critic_is_kipfs_formula(seen):
    """Against the dense D^-1/2 (A + I) D^-1/2 H W over one graph of all nodes."""
    agents, tasks = seen.options.shape[:2]
    first = np.concatenate(
        [
            mlp(CRITIC.encode_agent.layers, np.asarray(seen.agents)),
            mlp(CRITIC.encode_task.layers, np.asarray(seen.tasks)),
        ]
    )
    graph = np.eye(agents + tasks)
    graph[:agents, agents:] = np.asarray(seen.options).any(axis=2)
    graph[agents:, :agents] = graph[:agents, agents:].T
    scale = np.diag(graph.sum(axis=1) ** -0.5)
    nodes = first
    for layer in CRITIC.convolutions:
        nodes = mlp([layer], scale @ graph @ scale @ nodes)
    pooled = (nodes + first).mean(axis=0)
    expected = mlp(CRITIC.head.layers, pooled) @ np.asarray(CRITIC.value.weight)
    found = jax.jit(lambda seen: CRITIC(seen))(with_spare_rows(seen, *ROWS, seed=1))
    np.testing.assert_allclose(found, expected[0], rtol=1e-4, atol=1e-5)


@given(rows_of_scores, masks)
def test_masked_softmax_is_the_unpadded_one(scores, mask):
    found = np.asarray(masked_softmax(jnp.asarray(scores), jnp.asarray(mask)))
    logs = np.asarray(masked_log_softmax(jnp.asarray(scores), jnp.asarray(mask)))
    spread = np.asarray(entropy(jnp.asarray(logs), jnp.asarray(mask)))
    for row, marked, p, log, h in zip(scores, mask, found, logs, spread, strict=True):
        weights = np.exp(row[marked] - row[marked].max()) if marked.any() else row[:0]
        expected = weights / weights.sum()
        np.testing.assert_allclose(p[marked], expected, rtol=1e-5)
        np.testing.assert_allclose(np.exp(log[marked]), expected, rtol=1e-5)
        np.testing.assert_allclose(h, -(expected * np.log(expected)).sum(), atol=1e-5)
        assert (p[~marked] == 0).all()


@given(rows_of_scores, npst.arrays(bool, (3,)))
def test_statistics_are_those_of_the_set(rows, mask):
    found = np.asarray(set_statistics(jnp.asarray(rows), jnp.asarray(mask)))
    chosen = rows[mask]
    if not len(chosen):
        assert not found.any()
        return
    parts = [chosen.mean(0), chosen.var(0), chosen.min(0), chosen.max(0)]
    np.testing.assert_allclose(found, np.concatenate(parts), rtol=1e-4, atol=1e-5)


def test_gradients_of_empty_sets_are_numbers():
    nothing = jnp.zeros((2, 3), bool)

    def total(x):
        statistics = jax.vmap(set_statistics)(x[:, :, None], nothing)
        softmax = masked_softmax(x, nothing) + masked_log_softmax(x, nothing) * 0
        return statistics.sum() + softmax.sum() + masked_mean(x, nothing)

    gradient = jax.grad(total)(jnp.ones((2, 3)))
    assert np.isfinite(np.asarray(gradient)).all()


def test_samples_follow_their_distribution():
    probabilities = jnp.asarray([[0.2, 0.0, 0.5, 0.3, 0.0]] * 20_000)
    numbers = jax.random.uniform(jax.random.key(0), (20_000,))
    counts = np.bincount(np.asarray(sample(probabilities, numbers)), minlength=5)
    np.testing.assert_allclose(counts / 20_000, [0.2, 0, 0.5, 0.3, 0], atol=0.01)


@pytest.mark.parametrize("number", [0.0, 0.5, 0.9999999])
def test_a_certain_choice_is_always_taken(number):
    probabilities = jnp.asarray([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    numbers = jnp.full(3, number, jnp.float32)
    assert sample(probabilities, numbers).tolist() == [0, 2, 1]
