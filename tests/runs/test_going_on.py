"""Runs that cannot go on as they are: what they say, and that nothing is lost."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from command_line import refused, run_plato
from plato.errors import PlatoError
from plato.policies.checkpoint import load_actor
from plato.runs.folder import RunFolder
from plato.runs.train import train
from small_runs import SMALL, trained


def contents(folder: RunFolder) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder.path)): path.read_bytes()
        for path in folder.path.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> RunFolder:
    return RunFolder(trained(tmp_path_factory.mktemp("runs") / "whole"))


def test_a_nan_stops_the_run_and_loses_nothing(tmp_path):
    """A critic that runs away within some updates, of which many are done at once."""
    learning = replace(
        SMALL.learning, updates=200, critic_rate=3.0, rate_end=1.0, max_norm=1e9
    )
    wild = replace(SMALL, seeds=1, checkpoints=200, learning=learning)
    folder = RunFolder.create(tmp_path / "wild", wild)
    with pytest.raises(
        PlatoError,
        match=r"value_\w+ of wildfire-2x3-S3-seed42 is not a number at update \d+\. "
        r"The state after update \d+ and the metrics until then are in ",
    ) as refusal:
        train(folder)
    bad, last = map(int, re.findall(r"update (\d+)", str(refusal.value)))
    (run,) = wild.runs
    assert 1 < last < bad
    assert [row["update"] for row in folder.read_metrics(run)] == [*range(1, bad)]
    kept = [int(path.stem) for path in folder.checkpoints(run)]
    assert kept == [*range(1, bad)]
    for path in folder.checkpoints(run):
        assert all(
            np.isfinite(leaf).all() for leaf in jax.tree.leaves(load_actor(path))
        )
    # It goes on from there, to the same end.
    assert folder.updates_done() == last
    with pytest.raises(PlatoError, match=f"is not a number at update {bad}"):
        train(folder)
    assert folder.updates_done() == last


def test_a_nan_at_once_leaves_nothing(tmp_path):
    wild = replace(SMALL, learning=replace(SMALL.learning, critic_rate=1e30))
    folder = RunFolder.create(tmp_path / "wild", wild)
    with pytest.raises(PlatoError, match="Nothing was learned before that"):
        train(folder)
    assert folder.updates_done() == 0
    assert not folder.checkpoints(wild.runs[0])


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("game_seed = 300", "game_seed = 301", "game_seed is 301, .* with 300"),
        ("actor_rate = 0.002", "actor_rate = 0.1", "learning.actor_rate is 0.1"),
        ("updates = 6", "updates = 9", "learning.updates is 9"),
        ("updates = 6", "updates = 3", "learning.updates is 3"),
        ("seed = 42", "seed = 43", "seed is 43"),
        ("hidden = 8", "hidden = 16", "networks.hidden is 16"),
    ],
)
def test_a_run_does_not_go_on_with_other_settings(finished, old, new, words, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(finished.path, path)
    config = path / "config.toml"
    config.write_text(config.read_text().replace(f"\n{old}\n", f"\n{new}\n"))
    with pytest.raises(PlatoError, match=words):
        train(RunFolder(path))


def test_states_of_older_versions_go_on(finished, tmp_path):
    """They do not say what settings they were made with."""
    path = tmp_path / "run"
    shutil.copytree(finished.path, path)
    state = path / "state.safetensors"
    with safe_open(state, framework="numpy") as file:
        header = json.loads(file.metadata()["plato"])
    del header["config"]
    save_file(load_file(state), state, metadata={"plato": json.dumps(header)})
    assert train(RunFolder(path))


@pytest.mark.parametrize(
    ("file", "read"),
    [
        ("games.json", RunFolder.games),
        ("environment.json", RunFolder.environment),
        (
            "metrics/wildfire-2x3-S3-seed42.jsonl",
            lambda folder: folder.read_metrics(SMALL.runs[0]),
        ),
    ],
)
def test_what_is_cut_short_in_a_folder_is_named(finished, file, read, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(finished.path, path)
    whole = (path / file).read_text().rstrip()
    # Not at half: of a file of lines that may be where one ends.
    (path / file).write_text(whole[:-1])
    with pytest.raises(PlatoError, match=rf"{Path(file).name}: .*cut short or damaged"):
        read(RunFolder(path))


def test_a_state_that_is_cut_short_can_be_begun_anew(finished, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(finished.path, path)
    state = path / "state.safetensors"
    state.write_bytes(state.read_bytes()[:-50])
    with pytest.raises(PlatoError, match=r"damaged\. Delete it, and `plato train"):
        train(RunFolder(path))
    state.unlink()
    assert train(RunFolder(path))
    assert contents(RunFolder(path)) == contents(finished)


def test_a_run_that_goes_on_elsewhere_says_so(finished, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(finished.path, path)
    assert run_plato(tmp_path, "train", "--resume", "run").returncode == 0
    known = path / "environment.json"
    known.write_text(known.read_text().replace(jax.__version__, "0.4.2"))
    done = run_plato(tmp_path, "train", "--resume", "run")
    assert f"jax 0.4.2, now {jax.__version__}" in done.stdout
    shutil.rmtree(path / "checkpoints")
    refused(run_plato(tmp_path, "train", "--resume", "run"), "are missing")
