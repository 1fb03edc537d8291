"""Losses, scales and sequences against small computations of their own."""

import math
from dataclasses import replace
from functools import cache, partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plato.domains.setups import load_setup
from plato.domains.wildfire.game import Wildfire
from plato.errors import PlatoError
from plato.game import stack
from plato.learners.config import MappoConfig, RunName, TrainConfig
from plato.learners.mappo import (
    Batch,
    Hyper,
    Rates,
    create_learner,
    has_choice,
    losses,
    lowered,
    policy_along,
    prepare,
    update,
)
from plato.learners.rollout import rollout
from plato.learners.targets import Scale
from plato.policies.config import ActorConfig

CONFIG = MappoConfig(games=3, steps=9, updates=5, epochs=2, minibatches=3)
NO_BONUS = Rates(*(jnp.zeros(()) for _ in Rates.__dataclass_fields__))
KEYS: dict[str, Any] = {"key": jax.random.key(1), "game_key": jax.random.key(2)}


def games(count: int = 3, **fields):
    config = replace(load_setup("wildfire-3x3-S3").config, max_steps=6, **fields)
    return stack([Wildfire.from_config(config, agents=4, tasks=5)] * count)


# Compiled as a whole: operation by operation, each would be compiled by itself.
taught = jax.jit(losses)
nine_steps = jax.jit(partial(rollout, steps=9))


@cache
def played(encoder: Literal["mlp", "lstm"] = "mlp"):
    """A learner, the games it played, and the batch it would learn from."""
    actor = ActorConfig(hidden=8, encoder=encoder)
    learner = jax.jit(partial(create_learner, CONFIG, actor))(games(), **KEYS)
    stage, experience = nine_steps(
        games(), learner.networks.actor, learner.stage, jax.random.key(3)
    )
    _, batch = jax.jit(partial(prepare, CONFIG, Hyper.of(CONFIG)))(
        learner, stage, experience
    )
    return learner, stage, experience, batch


def test_an_untouched_policy_has_ratio_one():
    """Playing and learning see the same policy: KL 0, nothing clipped, in any form."""
    for encoder in ("mlp", "lstm"):
        learner, _, _, batch = played(encoder)
        loss, metrics = taught(
            jnp.asarray(0.2), NO_BONUS, batch, batch.memory, learner.networks
        )
        assert float(metrics["kl"]) == pytest.approx(0, abs=1e-6)
        assert float(metrics["clipped"]) == 0
        choice = np.asarray(has_choice(batch.observation))
        each = np.broadcast_to(np.asarray(batch.advantage)[..., None], choice.shape)
        assert each[choice].mean() == pytest.approx(0, abs=1e-5)
        assert each[choice].std() == pytest.approx(1, rel=1e-3)
        assert np.isfinite(float(loss))


def test_the_policy_loss_is_the_clipped_one():
    learner, _, _, batch = played()
    shift = jnp.where(jnp.arange(27) % 2 == 0, 0.5, -0.5)[None, :, None]
    old = replace(batch, log_probability=batch.log_probability - shift)
    _, metrics = taught(jnp.asarray(0.2), NO_BONUS, old, old.memory, learner.networks)
    choice = np.asarray(has_choice(batch.observation))
    ratio = np.broadcast_to(np.exp(np.asarray(shift)), choice.shape)
    gain = np.broadcast_to(np.asarray(batch.advantage)[..., None], choice.shape)
    expected = np.minimum(ratio * gain, np.clip(ratio, 0.8, 1.2) * gain)[choice].mean()
    assert float(metrics["policy_loss"]) == pytest.approx(-expected, rel=1e-4)
    assert float(metrics["clipped"]) == 1


def test_the_value_loss_is_the_clipped_one():
    learner, _, _, batch = played()
    critic = jax.jit(jax.vmap(jax.vmap(learner.networks.critic)))
    value = np.asarray(critic(batch.observation))
    old = jnp.asarray(value + 1.0)  # clipped: the new value counts as old - 0.2
    batch = replace(batch, value=old, target=jnp.asarray(value + 3.0))
    _, metrics = taught(
        jnp.asarray(0.2), NO_BONUS, batch, batch.memory, learner.networks
    )
    assert float(metrics["value_loss"]) == pytest.approx(0.5 * 3.0**2, rel=1e-4)


def test_those_without_a_choice_are_not_taught():
    """What absent agents did, or those with NOOP only, changes no gradient."""
    learner, _, _, batch = played()
    choice = has_choice(batch.observation)
    assert not choice.all()
    odd = replace(
        batch,
        log_probability=jnp.where(choice, batch.log_probability, 7.0),
    )
    gradient = jax.jit(jax.grad(losses, argnums=4, has_aux=True))
    weights = (jnp.asarray(0.2), replace(NO_BONUS, entropy=jnp.asarray(0.1)))
    one, _ = gradient(*weights, batch, None, learner.networks)
    other, _ = gradient(*weights, odd, None, learner.networks)
    jax.tree.map(np.testing.assert_array_equal, one, other)


def test_an_lstm_learns_through_the_memories_it_had():
    """Along time, a rollout has the very log-probabilities it was played by."""
    learner, stage, experience, batch = played("lstm")
    assert batch.started.shape == (9, 3)
    logs = jax.jit(policy_along)(learner.networks.actor, batch, learner.stage.memory)
    taken = jnp.take_along_axis(logs, batch.actions[..., None], axis=-1)[..., 0]
    np.testing.assert_allclose(taken, experience.record, atol=1e-5)
    assert experience.started[0].all()
    assert experience.started[6].all()  # episodes of six steps
    assert not np.allclose(stage.memory.hidden, 0)


def test_values_beyond_a_time_limit_are_counted_on():
    _, _, experience, _ = played()
    assert experience.done[5].all()
    assert not experience.terminated[5].any()
    after = experience.final_observation.tasks[5]
    assert not np.array_equal(after, experience.observation.tasks[6])


def test_games_begun_anew_are_cut_not_ended():
    """Cut at every step: always the first moment, never a return to report."""
    learner, _, _, _ = played()
    actor, stage = learner.networks.actor, learner.stage
    stage, experience = nine_steps(
        games(), actor, stage, jax.random.key(3), restart=1.0
    )
    assert experience.done.all()
    assert experience.started.all()
    assert not experience.terminated.any()
    assert not experience.finished.any()
    first = experience.observation.tasks[0]
    assert (np.asarray(experience.observation.tasks) == np.asarray(first)).all()
    assert not np.array_equal(experience.final_observation.tasks[0], first)
    np.testing.assert_array_equal(stage.observation.tasks, first)


@pytest.mark.parametrize("normalise", [True, False])
def test_advantages_count_on_the_state_each_step_led_to(normalise):
    """Step by step in NumPy, with the critic asked about every state reached."""
    config = replace(CONFIG, value_normalisation=normalise)
    learner, stage, experience, _ = played()
    seen = Scale(jnp.asarray(2.0), jnp.asarray(13.0), jnp.asarray(1.0))
    learner = replace(learner, scale=seen if normalise else learner.scale)
    mean, spread = (2.0, 3.0) if normalise else (0.0, 1.0)
    critic = jax.jit(jax.vmap(jax.vmap(learner.networks.critic)))
    value = np.asarray(critic(experience.observation)) * spread + mean
    ahead = np.asarray(critic(experience.final_observation)) * spread + mean
    ahead = np.where(experience.terminated, 0, ahead)
    reward, done = np.asarray(experience.reward), np.asarray(experience.done)
    expected, later = np.zeros_like(value), np.zeros(value.shape[1])
    for t in reversed(range(len(value))):
        surprise = reward[t] + config.gamma * ahead[t] - value[t]
        later = surprise + config.gamma * config.lam * np.where(done[t], 0, later)
        expected[t] = later
    scale, batch = jax.jit(partial(prepare, config, Hyper.of(config)))(
        learner, stage, experience
    )
    new_mean, new_spread = map(float, scale.moments())
    assert normalise or (new_mean, new_spread) == (0.0, 1.0)
    targets = np.asarray(batch.target).reshape(value.shape) * new_spread + new_mean
    np.testing.assert_allclose(targets, expected + value, rtol=1e-4, atol=1e-4)


def test_the_scale_is_that_of_the_returns():
    returns = jnp.asarray([[1.0, 3.0], [5.0, 7.0]])
    mean, spread = Scale.create().updated(returns).moments()
    assert float(mean) == pytest.approx(4.0)
    assert float(spread) == pytest.approx(np.std([1, 3, 5, 7]), rel=1e-4)
    mean, spread = Scale.create().moments()
    assert (float(mean), float(spread)) == (0.0, 1.0)


def test_rates_fall_as_they_should():
    hyper = Hyper.of(replace(CONFIG, entropy=0.1, entropy_end=0.001, rate_end=0.05))
    parts = [jnp.asarray(part) for part in (0.0, 0.5, 1.0)]
    first, middle, last = (Rates.at("geometric", hyper, part) for part in parts)
    assert float(first.entropy) == pytest.approx(0.1)
    assert float(middle.entropy) == pytest.approx(0.01)
    assert float(last.entropy) == pytest.approx(0.001)
    assert float(first.actor) == pytest.approx(CONFIG.actor_rate)
    assert float(last.critic) == pytest.approx(0.05 * CONFIG.critic_rate)
    along = [float(Rates.at("linear", hyper, part).entropy) for part in parts]
    assert along == pytest.approx([0.1, 0.0505, 0.001])


def test_lower_precision_changes_little_and_saves_nothing_but_float32():
    whole, half = (replace(CONFIG, precision=p) for p in ("float32", "bfloat16"))
    learner, _, _, _ = played()
    seen = learner.stage.observation

    def log_policy(config: MappoConfig):
        actor = lowered(config, learner.networks.actor)
        return jax.jit(jax.vmap(lambda moment: actor.log_policy(moment, None)[0]))(seen)

    one, other = log_policy(whole), log_policy(half)
    assert one.dtype == other.dtype == jnp.float32
    mask = jax.vmap(lambda s: s.action_mask)(seen)
    np.testing.assert_allclose(one[mask], other[mask], atol=0.05)
    assert not np.array_equal(one[mask], other[mask])
    values = [
        jax.jit(jax.vmap(lowered(config, learner.networks.critic)))(seen)
        for config in (whole, half)
    ]
    assert values[1].dtype == jnp.float32
    np.testing.assert_allclose(values[0], values[1], atol=0.1)
    step = jax.jit(partial(update, half, Hyper.of(half)))
    following, metrics = step(games(), learner, *KEYS.values())
    floats = [
        leaf
        for leaf in jax.tree.leaves((following.networks, following.optimiser))
        if jnp.issubdtype(leaf.dtype, jnp.floating)
    ]
    assert all(leaf.dtype == jnp.float32 for leaf in floats)
    assert all(np.isfinite(value).all() for value in metrics.values())


def test_no_recompilation_on_the_second_update():
    traces = 0

    def counted(*arguments):
        nonlocal traces
        traces += 1
        return update(CONFIG, Hyper.of(CONFIG), *arguments)

    step = jax.jit(counted)
    learner, _, _, _ = played()
    for _ in range(3):
        learner, metrics = step(games(), learner, KEYS["key"], KEYS["game_key"])
        assert all(np.isfinite(np.asarray(v)).all() for v in metrics.values())
    assert traces == 1
    assert int(learner.update) == 3


def test_spare_rows_do_not_change_what_is_learned():
    """Capacity is memory, not meaning, in training too (to float tolerance)."""
    config = load_setup("wildfire-3x3-S3").config
    learned = []
    for rows in ({"agents": 3, "tasks": 4}, {"agents": 6, "tasks": 9}):
        some = stack([Wildfire.from_config(config, **rows)] * 3)
        create = jax.jit(partial(create_learner, CONFIG, ActorConfig(hidden=8)))
        learner = create(some, **KEYS)
        step = jax.jit(partial(update, CONFIG, Hyper.of(CONFIG)))
        for _ in range(2):
            learner, _ = step(some, learner, KEYS["key"], KEYS["game_key"])
        learned.append(jax.tree.leaves(learner.networks))
    for one, other in zip(*learned, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"learning": MappoConfig(games=10, steps=10, minibatches=7)}, "minibatches=7"),
        (
            {
                "networks": ActorConfig(encoder="lstm"),
                "learning": MappoConfig(games=10, steps=8, minibatches=4),
            },
            "10 games of a rollout",
        ),
        ({"setups": ()}, "setups is empty"),
        ({"setups": ("a", "b", "c")}, "games=64 cannot be shared evenly by 3 setups"),
        ({"setups": ("a", "a"), "fleet": True}, "would be called a-seed42; name every"),
        ({"setups": ("a/b.toml", "a-b"), "fleet": True}, "would be called a-b-seed42"),
        ({"seeds": 0}, "seeds must be from 1"),
    ],
)
def test_what_does_not_fit_is_refused(fields, words):
    with pytest.raises(PlatoError, match=words):
        TrainConfig(**({"setups": ("wildfire-3x3-S3",)} | fields))


def test_trainings_across_many_setups_have_names_that_files_can_have():
    some = tuple(f"wildfire-{i}x{i}-S{j}" for i in range(2, 12) for j in range(4))
    names = {str(RunName(some[:n], 42)) for n in (1, 2, 12, 39, 40)}
    names.add(str(RunName(some[1:], 42)))
    assert len(names) == 6
    assert max(map(len, names)) < 120
    assert str(RunName(some[:2], 42)) == "wildfire-2x2-S0+wildfire-2x2-S1-seed42"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"advice": -1.0}, "advice must be at least 0, not -1.0"),
        ({"advised": 0.0}, "advised must be above 0 and at most 1, not 0.0"),
        ({"gamma": 1.5}, "gamma must be at least 0 and at most 1, not 1.5"),
        ({"lam": math.nan}, "lam must be .*, not nan"),
        ({"actor_rate": -1.0}, "actor_rate must be at least 0, not -1.0"),
        ({"critic_rate": math.inf}, "critic_rate must be at least 0, not inf"),
        ({"clip": 0.0}, "clip must be above 0, not 0.0"),
        ({"restart": 2.0}, "restart must be"),
        ({"entropy_end": 0.0}, "entropy=0.05 cannot fall geometrically to"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(settings, words):
    with pytest.raises(PlatoError, match=words):
        MappoConfig(**settings)


def test_an_entropy_bonus_may_fall_to_nothing_or_come_from_it():
    for first, last in ((0.1, 0.0), (0.0, 0.1), (0.1, 0.05)):
        config = MappoConfig(entropy=first, entropy_end=last, entropy_fall="linear")
        found = [
            float(Rates.at("linear", Hyper.of(config), jnp.asarray(part)).entropy)
            for part in (0.0, 0.5, 1.0)
        ]
        np.testing.assert_allclose(found, [first, (first + last) / 2, last], atol=1e-7)


def test_batches_know_their_form():
    _, _, _, batch = played()
    assert isinstance(batch, Batch)
    assert batch.started.shape == (1, 27)
