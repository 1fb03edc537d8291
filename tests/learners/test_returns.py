"""Returns of finished episodes, as a training tells them."""

import jax.numpy as jnp
import numpy as np
import pytest

from plato.learners.returns import returned


def told(ended, total, setups):
    return returned(jnp.asarray(ended), jnp.asarray(total, jnp.float32), setups)


def test_of_one_setup_every_episode_counts_alike():
    metrics = told([2, 0, 1], [10.0, 0.0, 2.0], 1)
    assert set(metrics) == {"episodes", "return"}
    assert int(metrics["episodes"]) == 3
    assert float(metrics["return"]) == 4


def test_of_several_every_setup_counts_alike():
    metrics = told([8, 2, 1, 0], [30.0, 10.0, 80.0, 0.0], 2)
    assert metrics["setup_episodes"].tolist() == [10, 1]
    assert metrics["setup_return"].tolist() == [4, 80]
    assert float(metrics["return"]) == 42


@pytest.mark.parametrize("setups", [1, 2])
def test_without_episodes_they_are_numbers_too(setups):
    metrics = told([0, 0], [0.0, 0.0], setups)
    assert all((np.asarray(metric) == 0).all() for metric in metrics.values())


def test_a_setup_that_no_episode_ended_on_does_not_count():
    metrics = told([0, 2], [0.0, 6.0], 2)
    assert float(metrics["return"]) == 3
