"""Policies that come with the package: small, by name, everywhere."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plato
from plato.domains.setups import load_setup, write_setup
from plato.domains.wildfire.optimum.known import known_optimum
from plato.evaluation.evaluate import evaluate
from plato.evaluation.named import named_policy
from plato.experiments.shipping import averaged, ship
from plato.experiments.suite import NATIVE
from plato.numpy_actor import load as load_numpy
from plato.policies.checkpoint import load_actor, public_features, save_policy
from plato.policies.config import ActorConfig
from plato.policies.padded import PaddedShape
from plato.policies.pointer import PointerActor
from plato.policies.pretrained import GENERALIST, meant_by, pretrained_file
from plato.tensors import read_header

GOLDEN = Path(__file__).parent / "golden"


def test_every_native_setup_has_one_and_all_are_small() -> None:
    assert set(plato.pretrained_names()) == {*NATIVE, GENERALIST}
    files = [pretrained_file(name) for name in plato.pretrained_names()]
    assert sum(file.stat().st_size for file in files) < 5_000_000


def test_each_was_trained_for_what_it_is_named_after() -> None:
    for name in plato.pretrained_names():
        about = read_header(pretrained_file(name))["about"]
        assert about["setups"] == (list(NATIVE) if name == GENERALIST else [name])
        assert about["chosen"]["score"] > 0.9


def test_specialists_are_of_one_form() -> None:
    """Else they could not advise one learner together."""
    forms = [read_header(pretrained_file(name))["actor"] for name in NATIVE]
    assert all(form == forms[0] for form in forms)


@pytest.mark.parametrize("name", ["wildfire-2x3-S2", "wildfire-3x3-S3"])
def test_they_play_close_to_the_optimum(name: str) -> None:
    setup = load_setup(name)
    played = evaluate("pretrained", setup, episodes=400, seed=5_000)
    best = known_optimum(setup)
    assert best is not None
    assert played.metrics["return"].mean() > 0.95 * best


def test_without_a_name_it_is_the_setups_own() -> None:
    assert meant_by("pretrained", "wildfire-3x3-S1").stem == "wildfire-3x3-S1"
    assert meant_by("pretrained", "wildfire-5x5-S1-transfer").stem == GENERALIST
    # A setup that was edited is another game, whatever its name.
    shipped = load_setup("wildfire-3x3-S1")
    edited = replace(shipped, content=replace(shipped.config, max_steps=9))
    own, other = (named_policy("pretrained", game) for game in (shipped, edited))
    assert own.start(3) is None
    assert other.start(3) is not None  # the generalist remembers
    chosen = meant_by("pretrained:wildfire-2x3-S2", "wildfire-3x3-S1")
    assert chosen.stem == "wildfire-2x3-S2"


def test_an_unknown_one_is_refused_by_name() -> None:
    with pytest.raises(plato.PlatoError, match=r"no pretrained policy named '3x3'.*S3"):
        plato.pretrained("3x3")
    with pytest.raises(plato.PlatoError, match="no pretrained policy named 'best'"):
        named_policy("pretrained:best", load_setup("wildfire-2x3-S0"))


def test_it_decides_and_exports_like_any_other(tmp_path: Path) -> None:
    policy = plato.pretrained("wildfire-3x3-S3")
    agents, tasks = np.ones((3, 4)), np.arange(20.0).reshape(5, 4) % 4
    decision = policy.decide(agents, tasks, np.ones((3, 5), bool))
    np.testing.assert_allclose(decision.probabilities.sum(axis=1), 1, rtol=1e-5)
    plato.export("pretrained:wildfire-3x3-S3", tmp_path)
    _, alone, _ = load_numpy(tmp_path / "policy.npz").decide(
        agents, tasks, np.ones((3, 5), bool)
    )
    np.testing.assert_allclose(alone, decision.probabilities, atol=1e-5)


def test_it_plays_as_well_when_asked_moment_by_moment(tmp_path: Path) -> None:
    """What others see of an agent is as in training, without being told so."""
    name = "wildfire-3x3-S3"
    game = load_setup(name).game()
    reset, step = eqx.filter_jit(game.reset), eqx.filter_jit(game.step)
    policy = plato.pretrained(name)
    plato.export(f"pretrained:{name}", tmp_path)
    alone = load_numpy(tmp_path / "policy.npz")
    moment: dict[str, Any] = {}
    decision: Any = None
    returns = []
    for seed in range(4):
        key, total, done = jax.random.key(seed), 0.0, False
        state, seen = reset(key)
        while not done:
            burning = np.flatnonzero(seen.exists)
            moment = {
                "agents": np.asarray(seen.agents),
                "tasks": np.asarray(seen.tasks)[burning],
                "options": np.asarray(seen.options)[:, burning, 0],
                "present": np.asarray(seen.present),
            }
            decision = policy.decide(**moment)
            places = np.append(-1, burning)[decision.actions]
            key, now = jax.random.split(key)
            state, seen, outcome = step(now, state, jnp.asarray(places + 1, jnp.int32))
            total, done = total + float(outcome.reward.mean()), bool(outcome.done)
        returns.append(total)
        _, probabilities, _ = alone.decide(**moment)
        np.testing.assert_allclose(probabilities, decision.probabilities, atol=1e-5)
    assert np.mean(returns) > 60


def test_checkpoints_say_what_others_saw_or_their_setups_do(tmp_path: Path) -> None:
    path = pretrained_file("wildfire-3x3-S3")
    hidden = [True, True, False, True]
    assert read_header(path)["public"] == public_features(path) == hidden

    shape = PaddedShape(agents=2, agent_features=4, task_features=4)
    config = ActorConfig(hidden=8)
    actor = PointerActor.create(config, shape.features, key=jax.random.key(0))
    shown = tmp_path / "shown.toml"
    seen = replace(load_setup("wildfire-2x3-S2").config, observe_other_power=True)
    write_setup(shown, seen)
    old = tmp_path / "old.safetensors"
    for setups, expected in (
        (["wildfire-2x3-S2"], hidden),
        ([str(shown)], [True] * 4),
        ([str(shown), "wildfire-2x3-S2"], hidden),
        (["gone.toml"], [True] * 4),
        (["couriers.py:couriers"], [True] * 4),
    ):
        save_policy(old, actor, config, shape, {"setups": setups})
        assert public_features(old) == expected
    save_policy(old, actor, config, shape, {}, [True, False])
    with pytest.raises(plato.PlatoError, match="public has 2 flags for the 4"):
        plato.load(old)


def test_shipping_keeps_the_best_in_half_the_bytes(tmp_path: Path) -> None:
    blank = tmp_path / "untrained.safetensors"
    shape = PaddedShape(agents=2, agent_features=4, task_features=4, actions=1, pad=2)
    config = ActorConfig(hidden=32)
    actor = PointerActor.create(config, shape.features, key=jax.random.key(0))
    about = {"setups": ["wildfire-2x3-S2"], "seed": 42, "update": 0}
    save_policy(blank, actor, config, shape, about)
    ship([blank, pretrained_file("wildfire-2x3-S2")], tmp_path / "a", episodes=50)
    kept = tmp_path / "a" / "wildfire-2x3-S2.safetensors"
    chosen = read_header(kept)["about"]["chosen"]
    assert chosen["of"] == 2
    assert chosen["score"] > 0.9
    assert load_actor(kept).noop.dtype == np.float32
    assert read_header(kept)["public"] == [True, True, False, True]

    ship([blank], tmp_path / "b", episodes=5)
    halved = tmp_path / "b" / "wildfire-2x3-S2.safetensors"
    assert halved.stat().st_size < 0.7 * blank.stat().st_size
    np.testing.assert_allclose(load_actor(halved).noop, actor.noop, rtol=1e-3)


def test_shipping_at_half_the_temperature_doubles_all_scores(tmp_path: Path) -> None:
    name = "wildfire-2x3-S2"
    ship([pretrained_file(name)], tmp_path, episodes=5, temperature=0.5)
    kept = tmp_path / f"{name}.safetensors"
    assert read_header(kept)["about"]["temperature"] == 0.5
    agents, tasks = np.ones((2, 4)), np.arange(12.0).reshape(3, 4)
    given = agents, tasks, np.ones((2, 3, 1), bool)
    before, after = (
        np.log(plato.load(path).decide(*given).probabilities)
        for path in (pretrained_file(name), kept)
    )
    odds = np.diff(before, axis=-1)
    assert np.abs(odds).max() > 0.1
    np.testing.assert_allclose(np.diff(after, axis=-1), 2 * odds, rtol=1e-3, atol=1e-4)


def test_dot_products_have_no_temperature(tmp_path: Path) -> None:
    path = tmp_path / "dot.safetensors"
    shape = PaddedShape(agents=2, agent_features=4, task_features=4, actions=1, pad=2)
    config = ActorConfig(hidden=32, scorer="dot")
    actor = PointerActor.create(config, shape.features, key=jax.random.key(0))
    save_policy(path, actor, config, shape, {"setups": ["wildfire-2x3-S2"]})
    with pytest.raises(plato.PlatoError, match=r"dot\.safetensors: its scores are dot"):
        ship([path], tmp_path, episodes=5, temperature=0.5)


def test_shipping_refuses_what_does_not_say_where_it_is_from(tmp_path: Path) -> None:
    with pytest.raises(plato.PlatoError, match=r"default\.safetensors: does not say"):
        ship([GOLDEN / "default.safetensors"], tmp_path)


def test_what_had_other_setups_before_is_shipped_for_all_of_them(
    tmp_path: Path,
) -> None:
    last = pretrained_file("wildfire-2x3-S2")
    setups = ["wildfire-2x3-S1", "wildfire-2x3-S2"]
    ship([last], tmp_path, episodes=20, setup=setups)
    about = read_header(tmp_path / "generalist.safetensors")["about"]
    assert about["setups"] == setups
    alone = read_header(last)["about"]["chosen"]["score"]
    assert about["chosen"]["score"] != pytest.approx(alone, abs=0.01)


def test_a_mean_of_policies_is_one_leaf_by_leaf(tmp_path: Path) -> None:
    name = "wildfire-2x3-S2"
    files = [pretrained_file(f"wildfire-2x3-S{level}") for level in (2, 3)]
    one, other = map(load_actor, files)
    mean = averaged([one, other], [0.25, 0.75])
    for found, *ends in zip(*map(jax.tree.leaves, (mean, one, other)), strict=True):
        np.testing.assert_allclose(found, 0.25 * ends[0] + 0.75 * ends[1], rtol=1e-5)
    ship(files, tmp_path, episodes=5, setup=[name], parts=[0.25, 0.75])
    kept = read_header(tmp_path / f"{name}.safetensors")["about"]["parts"]
    assert [part["part"] for part in kept] == [0.25, 0.75]
    np.testing.assert_allclose(
        load_actor(tmp_path / f"{name}.safetensors").noop, mean.noop, rtol=1e-3
    )


def test_means_that_cannot_be_are_refused(tmp_path: Path) -> None:
    files = [pretrained_file(f"wildfire-2x3-S{level}") for level in (2, 3)]
    for parts in ([1.0], [0.5, 0.6], [1.5, -0.5]):
        with pytest.raises(plato.PlatoError, match="one for each of the 2 checkpoints"):
            ship(files, tmp_path, episodes=5, parts=parts)
    with pytest.raises(plato.PlatoError, match="trained on different setups; say with"):
        ship(files, tmp_path, episodes=5, parts=[0.5, 0.5])
    unlike = [files[0], pretrained_file("generalist")]
    with pytest.raises(plato.PlatoError, match="differ in their networks"):
        ship(unlike, tmp_path, episodes=5, parts=[0.5, 0.5])
