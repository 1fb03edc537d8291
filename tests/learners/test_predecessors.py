"""Trainings that begin with a policy that was trained before."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from command_line import refused, run_plato
from plato.domains.setups import load_setup
from plato.errors import PlatoError
from plato.game import Features
from plato.learners.config import TrainConfig
from plato.learners.program import Program
from plato.policies.checkpoint import load_policy, save_policy
from plato.policies.config import ActorConfig
from plato.policies.padded import PaddedShape
from plato.policies.pointer import PointerActor
from plato.policies.pretrained import pretrained_file
from plato.runs.folder import RunFolder
from plato.runs.train import train
from small_runs import SMALL, trained

ONE = replace(SMALL, seeds=1)
ALIKE = {"context": "pointer", "depth": 2}
"""What the specialists that come with PLATO have."""


def beginning(config: TrainConfig, begin_with: str, **learning: Any) -> TrainConfig:
    changed = replace(config.learning, begin_with=begin_with, **learning)
    return replace(config, learning=changed)


def program(config: TrainConfig) -> Program:
    return Program(config, {name: load_setup(name) for name in config.setups})


def differ(one: Any, other: Any) -> bool:
    leaves = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return any((np.asarray(a) != np.asarray(b)).any() for a, b in leaves)


def test_every_run_begins_with_it_and_learns_on(tmp_path):
    first = trained(tmp_path / "first", seeds=1)
    (run,) = ONE.runs
    last = RunFolder(first).checkpoints(run)[-1]
    later = program(beginning(SMALL, str(first)))
    learners = later.start()
    given = load_policy(last)
    for actor, _ in later.policies(learners):
        assert not differ(actor, given)
    learners, _ = later.advance(learners, 1)
    for actor, _ in later.policies(learners):
        assert differ(actor, given)


def test_a_fleet_begins_with_what_comes_with_each_setup():
    names = ("wildfire-2x3-S1", "wildfire-2x3-S3")
    config = replace(ONE, setups=names, fleet=True, networks=ActorConfig(**ALIKE))
    fleet = program(beginning(config, "pretrained"))
    for name, (actor, _) in zip(names, fleet.policies(fleet.start()), strict=True):
        assert not differ(actor, load_policy(pretrained_file(name)))


def test_at_first_the_critic_learns_alone(tmp_path):
    first = trained(tmp_path / "first", seeds=1)
    config = beginning(ONE, str(first), critic_first=0.4)
    alone = program(config)
    (contenders,) = learners = alone.start()
    actor, critic = jax.device_get(
        (contenders[0].learner.networks.actor, contenders[0].learner.networks.critic)
    )
    changed = []
    for update in range(1, 7):
        learners, _ = alone.advance(learners, update)
        networks = learners[0][0].learner.networks
        assert differ(networks.critic, critic)
        changed.append(differ(networks.actor, actor))
    # Of six updates, the third is where two fifths are done.
    assert changed == [False, False, True, True, True, True]


@pytest.mark.parametrize(
    ("begin_with", "words"),
    [
        ("pretrained", "choose context='pointer', hidden=128, depth=2"),
        ("pretrained:nobody", "no pretrained policy named 'nobody'"),
        ("nowhere.safetensors", "nowhere.safetensors: there is no such file"),
        ("other.safetensors", "other.safetensors was trained for another game"),
    ],
)
def test_what_cannot_be_begun_with_is_refused(
    begin_with: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    other = Features(5, 4, 1)
    actor = PointerActor.create(ONE.networks, other, key=jax.random.key(0))  # pyright: ignore[reportArgumentType]
    path = Path("other.safetensors")
    save_policy(path, actor, ONE.networks, PaddedShape(1, *other, 1), {})
    with pytest.raises(PlatoError, match=words):
        program(beginning(ONE, begin_with))


def test_the_command_takes_over_its_networks(tmp_path):
    trained(tmp_path / "first", seeds=1, networks=ActorConfig(hidden=8, scorer="dot"))
    where = ("--setup", "wildfire-2x3-S1", "--updates", 2, "--begin-with", "first")
    sizes = ("--games", 4, "--steps", 8, "--minibatches", 2)
    done = run_plato(tmp_path, "train", *where, *sizes, "--out", "later")
    assert done.returncode == 0, done.stderr
    config = RunFolder(tmp_path / "later").config()
    assert config.networks == ActorConfig(hidden=8, scorer="dot")
    assert config.begin_with == "first"
    refused(run_plato(tmp_path, "train", *where, "--depth", 2), "choose scorer='dot'")
    refused(run_plato(tmp_path, "train", *where, "--paper-form"), "ego=True")


def test_a_run_does_not_go_on_with_another_predecessor(tmp_path):
    runs = [trained(tmp_path / name, seeds=1, seed=i) for i, name in enumerate("ab")]
    files = [sorted(path.rglob("checkpoints/*/*.safetensors"))[-1] for path in runs]
    path = tmp_path / "mine.safetensors"
    shutil.copy(files[0], path)
    folder = RunFolder.create(tmp_path / "run", beginning(ONE, str(path)))
    assert train(folder)
    assert train(folder)  # there is nothing left to do, and nothing has changed
    shutil.copy(files[1], path)
    with pytest.raises(PlatoError, match="has not the predecessor that"):
        train(folder)
