"""Evaluation: seeds, metrics, and both noise protocols."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from parcels import parcels
from plato.configuration import whole_number
from plato.domains.setups import Setup, load_setup
from plato.domains.wildfire.game import Wildfire
from plato.domains.wildfire.paper_noise import mt19937, with_paper_noise
from plato.errors import PlatoError
from plato.evaluation.evaluate import evaluate
from plato.evaluation.metrics import METRICS, mean_and_std
from plato.evaluation.named import named_policy
from plato.experiments.heuristics import compare_heuristics
from plato.policies.rules import RulePolicy, uniform


def test_a_comparison_that_is_off_in_the_second_decimal_is_not_an_agreement():
    comparison = next(iter(compare_heuristics()))
    mean, std = comparison.ours
    assert replace(comparison, ours=(mean + 0.01, std)).agreements == 1
    assert replace(comparison, ours=(mean + 0.01, std - 0.01)).agreements == 0


def test_the_paper_stream_is_numpys_mersenne_twister():
    outputs = mt19937(5489, 3)
    # The first outputs of MT19937 with its reference seed, from its authors.
    assert outputs.tolist() == [3499211612, 581869302, 3890346734]


def test_paper_noise_takes_the_cells_of_the_fires():
    config = load_setup("wildfire-2x3-S3").config  # fires at (1,1) and (1,2)
    game = with_paper_noise(Wildfire.from_config(config, tasks=3), config)
    outputs = mt19937(67280421310721 & 0xFFFFFFFF, 2 * (18 + 15))
    numbers = (outputs & 0xFFFFFF) / 2**24
    second = numbers[33:]
    assert game.record.field[1, 0].tolist() == second[[4, 10, 16]].tolist()
    assert game.record.field[1, 1].tolist() == second[[5, 11, 17]].tolist()
    assert game.record.field[1, 2].tolist() == [1, 1, 1]
    assert game.record.agent[1, 2].tolist() == second[[20, 23, 26, 29, 32]].tolist()


def test_metrics_of_idleness_are_known_by_hand():
    result = evaluate("noop", "wildfire-3x3-S0", episodes=3)
    assert result.metrics["return"].tolist() == [-8.0] * 3
    assert result.metrics["reward_per_fight"].tolist() == [-8.0] * 3
    assert result.metrics["noop_percent"].tolist() == [100.0] * 3
    assert result.metrics["burnouts"].tolist() == [4.0] * 3
    assert result.metrics["putouts"].tolist() == [0.0] * 3
    assert set(result.metrics) == set(METRICS)


def test_what_follows_the_end_of_an_episode_does_not_count():
    """Weakest puts out 2x3 S0 in one or two steps of 100."""
    result = evaluate("weakest", "wildfire-2x3-S0", episodes=20)
    assert result.metrics["return"].tolist() == [4.0] * 20
    assert result.metrics["noop_percent"].max() < 50


def test_an_episode_depends_on_its_seed_alone():
    together = evaluate("random", "wildfire-3x3-S3", episodes=8, seed=200)
    later = evaluate("random", "wildfire-3x3-S3", episodes=3, seed=205)
    for name in METRICS:
        assert together.metrics[name][5:].tolist() == later.metrics[name].tolist()
    assert len(set(together.metrics["return"])) > 1


def test_paper_noise_is_the_same_for_every_seed():
    fixed = evaluate("noop", "wildfire-3x3-S3", episodes=5, noise="paper")
    assert len(set(fixed.metrics["burnouts"])) == 1
    tied = evaluate("weakest-released", "wildfire-3x3-S2", episodes=5, noise="paper")
    assert len(set(tied.metrics["return"])) > 1


@pytest.mark.parametrize(
    ("setup", "random", "weakest", "strongest"),
    [
        ("wildfire-2x3-S2", 6.8, 51.9, 27.9),
        ("wildfire-3x3-S3", 0.3, 50.8, 25.4),
        ("wildfire-4x4-S1", 8.3, 11.3, 12.6),
    ],
)
def test_means_under_independent_noise(setup, random, weakest, strongest):
    """Against an earlier, separate simulation of 20,000 episodes each."""
    expected = {"random": random, "weakest": weakest, "strongest": strongest}
    for policy, mean in expected.items():
        returns = evaluate(policy, setup, episodes=2500).metrics["return"]
        error = returns.std() * np.sqrt(1 / 2500 + 1 / 20_000)
        assert abs(returns.mean() - mean) < 4 * error + 0.05


def test_localized_rewards_are_averaged_over_the_team():
    setup = load_setup("wildfire-2x3-S0")
    reward = replace(setup.config.reward, localize_putouts=True)
    local = Setup("local", replace(setup.config, reward=reward))
    shared = evaluate("weakest", setup, episodes=50).metrics["return"]
    own = evaluate("weakest", local, episodes=50).metrics["return"]
    assert (own < shared).any()
    assert own.min() >= 4 / 3 - 1e-6


def test_a_policy_of_ones_own_can_be_evaluated():
    result = evaluate(RulePolicy(uniform), "wildfire-3x3-S1", episodes=4)
    named = evaluate("random", "wildfire-3x3-S1", episodes=4)
    assert result.policy == "RulePolicy"
    assert result.metrics["return"].tolist() == named.metrics["return"].tolist()


def test_many_episodes_are_played_in_batches(monkeypatch):
    from plato.evaluation import evaluate as module

    whole = evaluate("weakest-released", "wildfire-3x3-S2", episodes=7, noise="paper")
    monkeypatch.setattr(module, "LARGEST_BATCH", 3)
    parts = evaluate("weakest-released", "wildfire-3x3-S2", episodes=7, noise="paper")
    for name in METRICS:
        assert whole.metrics[name].tolist() == parts.metrics[name].tolist()


def test_any_game_can_be_evaluated():
    result = evaluate("random", parcels(), episodes=5)
    assert result.setup == "Parcels"
    assert (result.metrics["carried"] > 0).any()
    with pytest.raises(PlatoError, match="defined for setups"):
        evaluate("random", parcels(), noise="paper")


def test_json_holds_every_episode():
    data = evaluate("random", "wildfire-3x3-S1", episodes=4, seed=7).to_json()
    assert data["seeds"] == [7, 10]
    returns = data["metrics"]["return"]
    assert len(returns["episodes"]) == 4
    assert returns["mean"] == pytest.approx(np.mean(returns["episodes"]))
    assert returns["std"] == pytest.approx(np.std(returns["episodes"], ddof=1))


def test_one_episode_has_no_spread():
    assert mean_and_std(np.asarray([3.0])) == (3.0, 0.0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"episodes": 0}, "episodes must be from 1"),
        ({"seed": -1}, "seed must be from 0"),
        ({"seed": 2**32}, "seed must be from 0"),
    ],
)
def test_wrong_arguments_are_named(arguments, words):
    with pytest.raises(PlatoError, match=words):
        evaluate("noop", "wildfire-2x3-S0", **arguments)


@pytest.mark.parametrize("value", [1.5, "3", None, True])
def test_only_whole_numbers_are_whole_numbers(value):
    with pytest.raises(PlatoError, match="episodes must be a whole number"):
        whole_number("episodes", value, 1)
    assert whole_number("episodes", np.int64(3), 1) is None


def test_an_unknown_policy_is_named():
    with pytest.raises(PlatoError, match="no policy named 'best'; choose from: noop"):
        named_policy("best", load_setup("wildfire-2x3-S0"))


def test_setups_of_one_shape_share_a_compilation():
    from plato.evaluation.episodes import play_all

    evaluate("strongest", "wildfire-3x3-S1", episodes=6)
    compiled: Any = play_all
    before = compiled._cache_size()
    evaluate("strongest", "wildfire-3x3-S2", episodes=6)
    evaluate("strongest", "wildfire-3x3-S3", episodes=6, seed=9)
    assert compiled._cache_size() == before


def test_rows_beyond_the_team_do_not_count():
    """NOOP % and returns of a game with spare rows are those of the game itself."""
    from plato.evaluation.episodes import play_all
    from plato.seeding import seed_keys

    config = load_setup("wildfire-3x3-S3").config
    policy, keys = RulePolicy(uniform), seed_keys(200, 6)
    plain = play_all(Wildfire.from_config(config), policy, keys, 100)
    roomy = Wildfire.from_config(config, agents=7, tasks=9)
    padded = play_all(roomy, policy, keys, 100)
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, b), plain, padded)
    assert jnp.all(plain.decisions == 3 * plain.steps)
