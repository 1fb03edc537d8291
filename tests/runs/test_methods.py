"""The baselines through the same tools as the method: runs and checkpoints."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import plato
from plato.configuration import to_toml
from plato.errors import PlatoError
from plato.learners.baseline_configs import DgnLearning, DicgLearning, MohitoLearning
from plato.learners.config import METHODS, MappoConfig, TrainConfig
from plato.policies.baseline_configs import DgnConfig, DicgConfig
from plato.policies.checkpoint import load_actor, load_policy
from plato.policies.mohito_config import MohitoConfig
from plato.runs import train as loop
from plato.runs.folder import RunFolder
from plato.runs.train import train

SMALL = {
    "dicg": (
        DicgConfig(hidden=8, policy=(8,), critic_hidden=8),
        DicgLearning(games=4, steps=10, updates=4, epochs=2, minibatches=2),
    ),
    "dgn": (
        DgnConfig(hidden=8, depth=1, heads=2, head_size=4),
        DgnLearning(
            games=4, steps=5, updates=4, gradients=2, batch=8, memory=60, warm_up=40
        ),
    ),
    "mohito": (
        MohitoConfig(hidden=4, layers=2, heads=1),
        MohitoLearning(games=2, steps=5, updates=4, batch=4, memory=20, warm_up=15),
    ),
}


def config_of(method: str) -> TrainConfig:
    networks, learning = SMALL[method]
    return TrainConfig(
        setups=("wildfire-2x3-S3", "wildfire-3x3-S3"),
        fleet=True,
        seeds=1,
        checkpoints=2,
        networks=networks,
        learning=learning,
    )


@pytest.mark.parametrize("method", SMALL)
def test_a_baseline_trains_resumes_and_plays(method, tmp_path, monkeypatch):
    config = config_of(method)
    assert config.method == method
    whole = RunFolder.create(tmp_path / "whole", config)
    assert whole.config() == config
    assert train(whole)

    # Stopped after two updates and begun again: the same policies, bit for bit.
    monkeypatch.setattr(loop, "REPORT_SECONDS", 0.0)
    monkeypatch.setattr(loop, "pause_before_saving", lambda took: 0.0)
    halved = RunFolder.create(tmp_path / "halved", config)

    class Killed(BaseException):
        pass

    def kill(progress):
        if progress.update == 2:
            raise Killed

    with pytest.raises(Killed):
        train(halved, kill)
    assert train(halved)
    for run in config.runs:
        one, other = (f.checkpoints(run)[-1].read_bytes() for f in (whole, halved))
        assert one == other

    # On its own setup, and on others without retraining: more tasks, more agents.
    path = str(whole.checkpoints(config.runs[0])[-1])
    for setup in ("wildfire-2x3-S3", "wildfire-4x4-S1-transfer", "wildfire-4x4-S1"):
        returns = plato.evaluate(path, setup, episodes=3).metrics["return"]
        assert np.isfinite(returns).all()
    with pytest.raises(PlatoError, match="for pointers only"):
        load_actor(whole.checkpoints(config.runs[0])[-1])
    policy = load_policy(whole.checkpoints(config.runs[0])[-1])
    assert any(np.abs(np.asarray(leaf)).sum() > 0 for leaf in jax.tree.leaves(policy))


@pytest.mark.parametrize("method", ["dicg", "dgn"])
def test_a_baseline_trains_with_fewer_slots_than_tasks(method, tmp_path):
    """Numbers that are none would end the training."""
    config = config_of(method)
    config = replace(
        config,
        setups=("wildfire-3x3-S3",),
        fleet=False,
        networks=replace(config.networks, pad=2),
    )
    assert train(RunFolder.create(tmp_path, config))


def test_configurations_of_all_methods_are_read_as_they_are_written(tmp_path):
    for method, (networks, learning) in METHODS.items():
        config = TrainConfig(setups=("a",), networks=networks(), learning=learning())
        path = tmp_path / f"{method}.toml"
        path.write_text(to_toml(config.to_mapping()))
        data = plato.configuration.read_toml(path)
        assert data["method"] == method
        assert TrainConfig.from_mapping(data) == config
        shortest = TrainConfig.from_mapping({"method": method, "setups": ["a"]})
        assert shortest == config


def test_settings_that_do_not_go_together_are_refused():
    with pytest.raises(PlatoError, match="teaches networks of DicgConfig"):
        TrainConfig(setups=("a",), learning=DicgLearning())
    read = TrainConfig.from_mapping
    with pytest.raises(PlatoError, match="method must be one of plato, dicg"):
        read({"method": "qmix", "setups": ["a"]})
    with pytest.raises(PlatoError, match="learning must be a table"):
        read({"setups": ["a"], "learning": 3})
    with pytest.raises(PlatoError, match=r"learning\.clop .* 'clip'"):
        read({"setups": ["a"], "learning": {"clop": 0.1}})
    with pytest.raises(PlatoError, match="shared evenly"):
        replace(config_of("dgn"), fleet=False, setups=("a", "b", "c"))
    with pytest.raises(PlatoError, match="minibatches=7 does not divide"):
        TrainConfig(setups=("a",), learning=MappoConfig(minibatches=7))
