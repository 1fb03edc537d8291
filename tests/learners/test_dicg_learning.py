"""DICG's learning rule against small computations of its own."""

from dataclasses import replace
from functools import cache, partial
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plato
from plato.domains.setups import load_setup
from plato.domains.wildfire.game import Wildfire
from plato.errors import PlatoError
from plato.game import stack
from plato.learners.baseline_configs import DicgLearning
from plato.learners.dicg import (
    create_dicg,
    dicg_losses,
    prepare_dicg,
    standardised,
    update_dicg,
)
from plato.learners.rollout import rollout
from plato.policies.baseline_configs import DicgConfig
from plato.policies.padded import PaddedShape

CONFIG = DicgLearning(games=4, steps=9, updates=3, epochs=2, minibatches=2)
SHAPE = PaddedShape(agents=3, agent_features=4, task_features=4, pad=5)
KEYS = {"key": jax.random.key(1), "game_key": jax.random.key(2)}
Execution = Literal["centralised", "decentralised"]


def small(execution: Execution = "centralised") -> DicgConfig:
    return DicgConfig(
        execution=execution, hidden=8, policy=(8,), critic_hidden=8, layers=2
    )


def games():
    config = replace(load_setup("wildfire-3x3-S3").config, max_steps=6)
    return stack([Wildfire.from_config(config, agents=4, tasks=5)] * 4)


# Compiled as a whole: operation by operation, each would be compiled by itself.
taught = jax.jit(partial(dicg_losses, CONFIG))


@cache
def created(execution: Execution = "centralised"):
    create = partial(create_dicg, CONFIG, small(execution), SHAPE)
    return jax.jit(create)(games(), **KEYS)


@cache
def played(execution: Execution = "centralised"):
    learner = created(execution)
    stage, experience = jax.jit(partial(rollout, steps=CONFIG.steps))(
        games(), learner.networks.actor, learner.stage, jax.random.key(3)
    )
    prepare = jax.jit(partial(prepare_dicg, CONFIG))
    return learner, experience, prepare(learner.networks, stage, experience)


@pytest.mark.parametrize("execution", ["centralised", "decentralised"])
def test_an_untouched_policy_has_ratio_one(execution):
    learner, experience, batch = played(execution)
    _, metrics = taught(batch, learner.networks)
    assert float(metrics["kl"]) == pytest.approx(0, abs=1e-6)
    assert float(metrics["clipped"]) == 0
    gain = np.asarray(batch.advantage).mean()
    assert float(metrics["policy_loss"]) == pytest.approx(-gain, abs=1e-6)
    offered = jax.vmap(jax.vmap(lambda seen: seen.action_mask))(experience.observation)
    taken = np.take_along_axis(
        np.asarray(offered), np.asarray(batch.actions)[..., None], axis=-1
    )
    assert taken.all()


def test_the_ratio_is_that_of_the_joint_action():
    """Each agent's change multiplies: one ratio for a moment, clipped as one."""
    learner, _, batch = played()
    old = replace(batch, log_probability=batch.log_probability - 3 * 0.1)
    _, metrics = taught(old, learner.networks)
    gain = np.asarray(batch.advantage)
    ratio = np.exp(0.3)
    expected = np.minimum(ratio * gain, 1.2 * gain).mean()
    assert float(metrics["policy_loss"]) == pytest.approx(-expected, rel=1e-4)
    assert float(metrics["clipped"]) == 1


def test_advantages_are_standardised_trajectory_by_trajectory():
    draws = np.random.default_rng(0)
    advantage = draws.normal(3, 2, (7, 2)).astype(np.float32)
    started = np.zeros((7, 2), bool)
    started[[0, 4], 0] = True  # the second game goes on from before
    started[2, 1] = True
    found = np.asarray(
        jax.jit(standardised)(jnp.asarray(advantage), jnp.asarray(started))
    )
    pieces = [(0, 0, 4), (0, 4, 7), (1, 0, 2), (1, 2, 7)]
    for game, begin, end in pieces:
        piece = advantage[begin:end, game]
        expected = (piece - piece.mean()) / piece.std()
        np.testing.assert_allclose(found[begin:end, game], expected, rtol=1e-4)
    alone = standardised(jnp.ones((1, 1)), jnp.ones((1, 1), bool))
    assert float(alone[0, 0]) == 0


def test_the_critic_learns_discounted_returns_by_likelihood():
    learner, experience, batch = played()
    critic = learner.networks.critic
    asked = jax.jit(jax.vmap(jax.vmap(critic)))
    reached = asked(experience.final_observation).mean
    later, expected = np.asarray(reached[-1]), []
    for t in reversed(range(CONFIG.steps)):
        # Episodes of six steps are cut, not ended: the critic is asked what was ahead.
        ahead = np.where(experience.done[t], reached[t], later)
        ahead = np.where(experience.terminated[t], 0, ahead)
        later = np.asarray(experience.reward[t]) + CONFIG.gamma * ahead
        expected.append(later)
    np.testing.assert_allclose(batch.returns, expected[::-1], rtol=1e-4, atol=1e-4)
    mean = np.asarray(asked(batch.observation).mean)
    std = float(jnp.exp(critic.log_std))
    density = -0.5 * ((np.asarray(batch.returns) - mean) / std) ** 2 - np.log(std)
    density -= 0.5 * np.log(2 * np.pi)
    _, metrics = taught(batch, learner.networks)
    assert float(metrics["value_loss"]) == pytest.approx(-density.mean(), rel=1e-4)


@pytest.mark.parametrize("execution", ["centralised", "decentralised"])
def test_updates_move_all_that_is_learned_and_compile_once(execution):
    traces = 0

    def counted(*arguments):
        nonlocal traces
        traces += 1
        return update_dicg(CONFIG, *arguments)

    step = jax.jit(counted)
    first = learner = created(execution)
    for _ in range(2):
        learner, metrics = step(games(), learner, KEYS["key"], KEYS["game_key"])
        assert all(np.isfinite(np.asarray(v)).all() for v in metrics.values())
    assert traces == 1
    for before, after in zip(
        jax.tree.leaves(first.networks), jax.tree.leaves(learner.networks), strict=True
    ):
        assert not np.array_equal(before, after)


def test_it_learns():
    """A few updates are enough to leave chance behind."""
    config = DicgLearning(games=16, steps=25, minibatches=2, rate=1e-3, entropy=0.01)
    setup = load_setup("wildfire-2x3-S3").config
    some = stack([Wildfire.from_config(setup)] * config.games)
    shape = replace(SHAPE, pad=2)
    create = partial(create_dicg, config, replace(small(), hidden=32), shape)
    learner = jax.jit(create)(some, **KEYS)
    step = jax.jit(partial(update_dicg, config))
    for _ in range(30):
        learner, _ = step(some, learner, KEYS["key"], KEYS["game_key"])
    actor = learner.networks.actor
    trained = plato.evaluate(actor, "wildfire-2x3-S3", episodes=300).metrics["return"]
    chance = plato.evaluate("random", "wildfire-2x3-S3", episodes=300).metrics["return"]
    assert trained.mean() > chance.mean() + 15


def test_what_does_not_fit_is_refused():
    with pytest.raises(PlatoError, match="minibatches=5 does not divide the 12 games"):
        DicgLearning(minibatches=5)
