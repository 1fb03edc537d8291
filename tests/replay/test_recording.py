"""Recordings: the episodes of `evaluate`, and the probabilities of the policy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from decided_actors import decided_actor
from parcels import parcels
from plato.domains.setups import load_setup
from plato.domains.wildfire.game import Wildfire
from plato.evaluation.evaluate import evaluate
from plato.evaluation.named import named_policy
from plato.policies.baseline_configs import DicgConfig
from plato.policies.dicg import DicgActor
from plato.policies.padded import PaddedShape
from plato.policies.rules import RulePolicy, uniform
from plato.policies.summaries import AgentPointer
from plato.replay.recording import record, record_game
from plato.replay.shares import largest_shares

SETUP = load_setup("wildfire-2x3-S3")


@pytest.mark.parametrize("noise", ["independent", "paper"])
@pytest.mark.parametrize("name", ["random", "weakest-released", "optimal"])
@pytest.mark.parametrize("seed", [200, 207])
def test_a_recording_is_the_episode_that_evaluate_plays(name, noise, seed):
    policy = named_policy(name, SETUP)
    recording = record(policy, SETUP, name=name, seed=seed, noise=noise)
    result = evaluate(policy, SETUP, episodes=1, seed=seed, noise=noise)
    assert {k: v[-1] for k, v in recording.metrics.items()} == {
        k: v[0] for k, v in result.metrics.items()
    }


@pytest.mark.parametrize("encoder", ["mlp", "lstm"])
def test_a_trained_policy_plays_as_it_is_evaluated(encoder):
    actor = decided_actor(encoder=encoder)
    recording = record(actor, SETUP, name="pointer", seed=203)
    result = evaluate(actor, SETUP, episodes=1, seed=203)
    assert recording.metrics["return"][-1] == result.metrics["return"][0]
    assert recording.metrics["noop_percent"][-1] == result.metrics["noop_percent"][0]


def test_metrics_grow_from_nothing():
    recording = record(named_policy("weakest", SETUP), SETUP, name="weakest")
    metrics = recording.metrics
    assert all(values[0] == 0 for values in metrics.values())
    assert all(len(values) == recording.steps + 1 for values in metrics.values())
    assert all(np.isfinite(values).all() for values in metrics.values())
    assert (np.diff(metrics["putouts"]) >= 0).all()


def test_an_episode_that_ends_early_is_as_long_as_it_lasted():
    setup = load_setup("wildfire-2x3-S0")
    recording = record(named_policy("weakest", setup), setup, name="weakest")
    assert recording.steps < 10
    assert len(recording.decisions.actions) == recording.steps
    assert len(recording.sights.exists) == recording.steps + 1
    assert recording.sights.exists[0].any()
    assert not recording.sights.exists[-1].any()


@pytest.mark.parametrize("encoder", ["mlp", "lstm"])
def test_probabilities_are_those_of_the_policy(encoder):
    """Played again, step by step, with the actions of the recording."""
    actor = decided_actor(encoder=encoder)
    recording = record(actor, SETUP, name="pointer")
    game = Wildfire.from_config(SETUP.config)
    shares, attention = recording.decisions.choices, recording.decisions.attention
    memory = actor.start(3)
    assert isinstance(actor.team, AgentPointer)
    for time in range(recording.steps):
        state = jax.tree.map(lambda leaf, t=time: leaf[t], recording.sights.state)
        seen = game.observe(jax.tree.map(jnp.asarray, state))
        log_policy, memory = actor.log_policy(seen, memory)
        expected = np.where(seen.present[:, None], jnp.exp(log_policy), 0)
        np.testing.assert_allclose(_rows(shares, time, 3), expected, atol=1e-5)
        weights = actor.team.weights(seen).mean(axis=2)
        expected = np.where(seen.present[:, None], weights, 0)
        np.testing.assert_allclose(_rows(attention, time, 3), expected, atol=1e-5)


def _rows(shares, time, entries):
    rows = np.zeros((3, entries))
    for agent, kept in enumerate(shares.kept[time]):
        index = shares.index[time, agent, :kept]
        rows[agent, index] = shares.probability[time, agent, :kept]
    return rows


def test_probabilities_of_those_who_are_there_add_up_to_one(actor):
    recording = record(actor, SETUP, name="pointer")
    shares = recording.decisions.choices
    assert shares is not None
    present = recording.sights.present[:-1]
    total = shares.probability.sum(axis=2)
    np.testing.assert_allclose(total[present], 1, atol=1e-5)
    assert (shares.counted[~present] == 0).all()
    assert (~present).any()


def test_only_pointers_at_agents_have_attention():
    statistics = decided_actor(query="statistics")
    recording = record(statistics, SETUP, name="statistics")
    assert recording.decisions.attention is None
    assert recording.decisions.choices is not None
    rule = record(named_policy("weakest", SETUP), SETUP, name="weakest")
    assert rule.decisions.choices is None


def test_dicg_tells_its_probabilities_too():
    shape = PaddedShape(agents=3, agent_features=4, task_features=4, pad=2)
    actor = DicgActor.create(DicgConfig(), shape, key=jax.random.key(0))
    recording = record(actor, SETUP, name="dicg")
    shares = recording.decisions.choices
    assert shares is not None
    assert recording.decisions.attention is None
    present = recording.sights.present[:-1]
    np.testing.assert_allclose(shares.probability.sum(axis=2)[present], 1, atol=1e-5)


def test_the_largest_shares_are_kept_and_the_rest_counted():
    probabilities = jnp.asarray([[0.1, 0.4, 0.2, 0.3], [0.0, 1.0, 0.0, 0.0]])
    mask = jnp.asarray([[True] * 4, [False, True, False, False]])
    shares = largest_shares(probabilities, mask, 2)
    assert shares.index[0].tolist() == [1, 3]
    assert shares.probability[0].tolist() == pytest.approx([0.4, 0.3])
    assert shares.counted.tolist() == [4, 1]
    assert shares.kept.tolist() == [2, 1]
    nobody = largest_shares(probabilities, jnp.zeros_like(mask), 2)
    assert nobody.counted.tolist() == [0, 0]
    assert not np.isnan(nobody.probability).any()


def test_any_game_can_be_recorded():
    recording = record_game(RulePolicy(uniform), parcels(), "random", 5)
    result = evaluate(RulePolicy(uniform), parcels(), episodes=1, seed=5)
    assert recording.metrics["return"][-1] == result.metrics["return"][0]
    assert recording.metrics["carried"][-1] == result.metrics["carried"][0]
    assert recording.steps == 7
