"""DGN's learning rule and its replay memory against small computations of their own."""

from dataclasses import replace
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plato
from plato.domains.setups import load_setup
from plato.domains.wildfire.game import Wildfire
from plato.errors import PlatoError
from plato.game import stack
from plato.learners.baseline_configs import DgnLearning
from plato.learners.dgn import (
    create_dgn,
    dgn_loss,
    epsilon_at,
    update_dgn,
)
from plato.learners.exploration import Explorer, transitions
from plato.learners.replay import Replay
from plato.learners.rollout import rollout
from plato.policies.baseline_configs import DgnConfig
from plato.policies.dgn import DgnActor, divergence
from plato.policies.padded import PaddedShape

CONFIG = DgnLearning(games=3, steps=4, gradients=2, batch=8, memory=30, warm_up=12)
NETWORK = DgnConfig(hidden=8, heads=2, head_size=4)
SHAPE = PaddedShape(agents=3, agent_features=4, task_features=4, pad=4)
KEYS = {"key": jax.random.key(1), "game_key": jax.random.key(2)}


def games(**fields):
    config = replace(load_setup("wildfire-3x3-S3").config, **fields)
    return stack([Wildfire.from_config(config, agents=4, tasks=5)] * 3)


def test_a_replay_memory_keeps_the_latest():
    replay = Replay.create(jax.ShapeDtypeStruct((), jnp.int32), 5)
    assert int(replay.draw(jax.random.key(0), 3).sum()) == 0  # blank
    for first in range(0, 9, 3):
        replay = replay.add(jnp.arange(first, first + 3))
    assert sorted(np.asarray(replay.items).tolist()) == [4, 5, 6, 7, 8]
    assert (int(replay.size), int(replay.added)) == (5, 9)
    drawn = np.asarray(replay.draw(jax.random.key(1), 200))
    assert set(drawn.tolist()) == {4, 5, 6, 7, 8}
    young = Replay.create(jax.ShapeDtypeStruct((), jnp.int32), 5).add(jnp.arange(2) + 7)
    assert set(np.asarray(young.draw(jax.random.key(2), 50)).tolist()) == {7, 8}


# Compiled as a whole: operation by operation, each would be compiled by itself.
twelve_steps = jax.jit(partial(rollout, steps=12))
loss_of = jax.jit(partial(dgn_loss, CONFIG))
q_values = jax.jit(DgnActor.q_values)


@cache
def created(shape: PaddedShape):
    return jax.jit(partial(create_dgn, CONFIG, NETWORK, shape))


def played(epsilon: float = 1.0, shape: PaddedShape = SHAPE, **fields):
    some = games(**fields)
    learner = created(shape)(some, **KEYS)
    player = Explorer(learner.taught.actor, jnp.asarray(epsilon))
    _, experience = twelve_steps(some, player, learner.stage, jax.random.key(3))
    return learner, experience


def test_the_loss_is_that_of_the_team_s_reward_and_the_next_best_action():
    learner, experience = played()
    batch = transitions(experience)
    actor = learner.taught.actor
    create = jax.jit(partial(DgnActor.create, NETWORK, SHAPE))
    other = create(key=jax.random.key(9))  # as the target
    loss, metrics = loss_of(other, batch, actor)
    errors, drifts = [], []
    for i in range(len(batch.reward)):
        seen, following = (
            jax.tree.map(lambda leaf, i=i: leaf[i], part)
            for part in (batch.observation, batch.following)
        )
        now, later = q_values(actor, seen), q_values(actor, following)
        goals = np.asarray(q_values(other, following).values)
        offered = np.asarray(following.action_mask)
        moved = np.asarray(divergence(now.relations[-1], later.relations[-1]))
        for agent in range(3):  # the fourth row is nobody
            best = goals[agent][offered[agent]].max()
            goal = float(batch.reward[i]) + 0.99 * float(batch.discount[i]) * best
            chosen = float(now.values[agent, int(batch.actions[i, agent])])
            errors.append((goal - chosen) ** 2)
            drifts.append(moved[agent])
    assert float(metrics["value_loss"]) == pytest.approx(np.mean(errors), rel=1e-4)
    assert float(metrics["drift"]) == pytest.approx(np.mean(drifts), rel=1e-3, abs=1e-7)
    expected = np.mean(errors) + 0.03 * np.mean(drifts)
    assert float(loss) == pytest.approx(expected, rel=1e-4)


def test_an_end_is_not_counted_on_and_a_time_limit_is():
    _, cut = played(max_steps=6)
    assert cut.done[5].all()
    assert (np.asarray(transitions(cut).discount) == 1).all()
    lit = ((False,) * 3,) * 3
    fire = replace(load_setup("wildfire-3x3-S0").config.fire, lit=lit)
    stochastic = replace(
        load_setup("wildfire-3x3-S0").config.stochastic, fire_fuel=False
    )
    _, over = played(fire=fire, stochastic=stochastic)
    assert over.terminated.all()
    assert (np.asarray(transitions(over).discount) == 0).all()


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_exploring_is_legal_and_as_often_as_asked(epsilon):
    learner, experience = played(epsilon)
    offered = jax.vmap(jax.vmap(lambda seen: seen.action_mask))(experience.observation)
    taken = np.take_along_axis(
        np.asarray(offered), np.asarray(experience.actions)[..., None], axis=-1
    )
    assert taken.all()

    def act(seen):
        return learner.taught.actor.act(jax.random.key(0), seen, None)[0]

    best = np.asarray(jax.jit(jax.vmap(jax.vmap(act)))(experience.observation))
    assert (best == np.asarray(experience.actions)).all() == (epsilon == 0)


def test_what_is_cut_off_is_neither_explored_nor_learned():
    learner, experience = played(shape=replace(SHAPE, pad=1))
    actor, batch = learner.taught.actor, transitions(experience)
    known = np.asarray(jax.jit(jax.vmap(actor.known))(batch.observation))
    offered = np.asarray(jax.vmap(lambda seen: seen.action_mask)(batch.observation))
    assert (offered & ~known).any()
    assert not (known & ~offered).any()
    assert np.take_along_axis(known, np.asarray(batch.actions)[..., None], -1).all()
    assert (np.asarray(batch.actions) > 0).any()
    loss, metrics = loss_of(actor, batch, actor)
    assert np.isfinite(float(loss))
    assert float(metrics["value_loss"]) < 1e3


def test_epsilon_falls_after_the_warm_up():
    config = DgnLearning(games=10, steps=20, updates=10, epsilon_fall=0.5, warm_up=100)
    found = [float(epsilon_at(config, jnp.asarray(s))) for s in (0, 100, 600, 9999)]
    assert found == pytest.approx([0.9, 0.9, 0.46, 0.02])


def test_updates_wait_then_move_actor_and_target_and_compile_once():
    traces = 0

    def counted(*arguments):
        nonlocal traces
        traces += 1
        return update_dgn(replace(CONFIG, warm_up=24), *arguments)

    step = jax.jit(counted)
    some = games()
    first = learner = created(SHAPE)(some, **KEYS)
    learner, _ = step(some, learner, KEYS["key"], KEYS["game_key"])
    jax.tree.map(
        np.testing.assert_array_equal, first.taught.actor, learner.taught.actor
    )
    for _ in range(3):
        learner, metrics = step(some, learner, KEYS["key"], KEYS["game_key"])
        assert all(np.isfinite(np.asarray(v)).all() for v in metrics.values())
    assert traces == 1
    assert int(learner.replay.size) == 30
    was, now, target = (
        np.asarray(part.head.weight)
        for part in (first.taught.actor, learner.taught.actor, learner.taught.target)
    )
    assert (was != now).any()
    assert 0 < np.abs(target - was).max() < np.abs(now - was).max()


def test_it_learns():
    """A short training is enough to leave chance behind."""
    config = DgnLearning(
        games=16, steps=10, gradients=8, batch=128, memory=8000, warm_up=800
    )
    config = replace(config, updates=80, rate=1e-3)
    setup = load_setup("wildfire-2x3-S3").config
    some = stack([Wildfire.from_config(setup)] * config.games)
    network = DgnConfig(hidden=32, heads=2, head_size=8)
    shape = replace(SHAPE, pad=2)
    learner = jax.jit(partial(create_dgn, config, network, shape))(some, **KEYS)
    step = jax.jit(partial(update_dgn, config))
    for _ in range(80):
        learner, _ = step(some, learner, KEYS["key"], KEYS["game_key"])
    played = plato.evaluate(learner.taught.actor, "wildfire-2x3-S3", episodes=300)
    chance = plato.evaluate("random", "wildfire-2x3-S3", episodes=300)
    assert played.metrics["return"].mean() > chance.metrics["return"].mean() + 10


def test_what_does_not_fit_is_refused():
    with pytest.raises(PlatoError, match="memory must be from 1200"):
        DgnLearning(memory=100)
    with pytest.raises(PlatoError, match="epsilon_fall must be above 0 and at most 1"):
        DgnLearning(epsilon_fall=1.5)
    with pytest.raises(PlatoError, match="nothing would be learned"):
        DgnLearning(games=4, steps=10, updates=3)
