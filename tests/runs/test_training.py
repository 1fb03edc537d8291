"""Runs: folders, checkpoints, resuming bit for bit, and what is refused."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import jax
import numpy as np
import pytest

import plato
from plato.domains.setups import Rows, Setup
from plato.domains.wildfire.maps import MORE_FIRES, MOVED, SCATTERED
from plato.errors import PlatoError
from plato.learners.config import (
    FEWEST_GAMES,
    Learning,
    MappoConfig,
    Maps,
    TrainConfig,
)
from plato.learners.program import Program, grouped
from plato.policies.checkpoint import load_actor, save_policy
from plato.policies.config import ActorConfig
from plato.policies.padded import PaddedShape
from plato.policies.pointer import PointerActor
from plato.runs import train as loop
from plato.runs.folder import RunFolder
from plato.runs.train import train
from plato.tensors import read_header

SMALL = TrainConfig(
    setups=("wildfire-2x3-S3",),
    seeds=2,
    checkpoints=2,
    networks=ActorConfig(hidden=8),
    learning=MappoConfig(
        games=4,
        steps=10,
        updates=6,
        epochs=2,
        minibatches=2,
        beginnings=2,
        audition=0.5,
    ),
)


def contents(folder: RunFolder) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder.path)): path.read_bytes()
        for path in sorted(folder.path.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> RunFolder:
    folder = RunFolder.create(tmp_path_factory.mktemp("runs") / "whole", SMALL)
    assert train(folder)
    return folder


def test_a_run_leaves_all_that_is_needed(finished):
    files = contents(finished)
    for run in ("wildfire-2x3-S3-seed42", "wildfire-2x3-S3-seed43"):
        assert f"checkpoints/{run}/000003.safetensors" in files
        assert f"checkpoints/{run}/000006.safetensors" in files
        lines = files[f"metrics/{run}.jsonl"].decode().splitlines()
        assert [json.loads(line)["update"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert finished.config() == SMALL
    about = json.loads(files["environment.json"])
    assert about["plato"] == plato.__version__
    assert about["jax"] == jax.__version__
    different = {files[f"metrics/{SMALL.runs[i]}.jsonl"] for i in range(2)}
    assert len(different) == 2


@pytest.fixture
def resumed(tmp_path, monkeypatch):
    """A run that was killed after some update, and begun again."""

    class Killed(BaseException):
        pass

    def run(config: TrainConfig, after: int) -> RunFolder:
        folder = RunFolder.create(tmp_path / f"killed-{after}", config)

        def kill(progress):
            if progress.update == after:
                raise Killed

        monkeypatch.setattr(loop, "pause_before_saving", lambda took: 0.0)
        monkeypatch.setattr(loop, "REPORT_SECONDS", 0.0)
        with pytest.raises(Killed):
            train(folder, kill)
        assert train(folder)
        return folder

    return run


@pytest.mark.parametrize("after", [1, 3, 4])
def test_resume_equals_uninterrupted(finished, resumed, after):
    """Killed at any moment and begun again: the same files, bit for bit."""
    assert contents(resumed(SMALL, after)) == contents(finished)


def test_saving_takes_a_small_part_of_the_time(tmp_path, monkeypatch):
    """By a clock on which an update takes 40 seconds and a save 3: every 60 or so."""
    assert loop.pause_before_saving(0.1) == 30.0
    assert loop.pause_before_saving(60.0) == 1200.0
    now, saved, advance = 0.0, [], Program.advance

    def tick(*arguments):
        nonlocal now
        now += 40.0
        return advance(*arguments)

    def save(folder, learner, update):
        nonlocal now
        now += 3.0
        saved.append(update)

    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(Program, "advance", tick)
    monkeypatch.setattr(RunFolder, "save_state", save)
    assert train(RunFolder.create(tmp_path / "run", SMALL))
    assert saved == [1, 3, 5, 6]


def test_what_a_killed_process_left_half_written_goes_away(finished, tmp_path):
    folder = RunFolder.create(tmp_path / "killed", SMALL)
    (folder.path / "checkpoints").mkdir()
    (folder.path / "checkpoints" / ".000003.safetensors.0a1b.partial").write_text("x")
    assert train(folder)
    assert contents(folder) == contents(finished)


def test_two_processes_cannot_train_in_one_folder(tmp_path):
    folder = RunFolder.create(tmp_path / "shared", SMALL)
    before = contents(folder)
    with folder.held(), pytest.raises(PlatoError, match="by another process"):
        train(folder)
    assert contents(folder) == before


def test_sigkill_loses_nothing(finished, tmp_path):
    """A real process, really killed, in the middle of its updates."""
    folder = RunFolder.create(tmp_path / "killed", SMALL)
    program = (
        "import sys; from pathlib import Path\n"
        "from plato.runs import train as loop\n"
        "from plato.runs.folder import RunFolder\n"
        "loop.pause_before_saving = lambda took: 0.0\n"
        "loop.REPORT_SECONDS = 0.0\n"
        "folder = RunFolder(Path(sys.argv[1]))\n"
        "loop.train(folder, lambda progress: print(progress.update, flush=True))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(folder.path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 3:
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert train(folder)
    assert contents(folder) == contents(finished)


def test_ctrl_c_saves_and_stops(finished, tmp_path):
    folder = RunFolder.create(tmp_path / "stopped", SMALL)

    def press(progress):
        if progress.update == 1:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)

    usual = signal.getsignal(signal.SIGINT)
    assert not train(folder, press)
    assert signal.getsignal(signal.SIGINT) is usual
    assert (folder.path / "state.safetensors").exists()
    assert train(folder)
    assert contents(folder) == contents(finished)


def test_seeds_run_side_by_side_as_they_run_alone(finished, tmp_path):
    alone = RunFolder.create(tmp_path / "alone", replace(SMALL, seeds=1))
    train(alone)
    run = SMALL.runs[0]
    one = load_actor(alone.checkpoints(run)[-1])
    other = load_actor(finished.checkpoints(run)[-1])
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)


def test_a_fleet_and_a_generalist():
    setups = ("wildfire-2x3-S3", "wildfire-3x3-S1")
    loaded = {name: plato.load_setup(name) for name in setups}
    fleet = Program(replace(SMALL, setups=setups, fleet=True), loaded)
    assert [str(run) for run in fleet.runs] == [
        "wildfire-2x3-S3-seed42",
        "wildfire-2x3-S3-seed43",
        "wildfire-3x3-S1-seed42",
        "wildfire-3x3-S1-seed43",
    ]
    assert len(fleet.groups) == 1
    ((first, second),), metrics = fleet.advance(fleet.start(), 1)
    assert fleet.in_order(metrics["return"]).shape == (4,)
    assert first.learner.stage.started.shape == (4, 4)
    assert first.number.tolist() == [0] * 4
    assert second.number.tolist() == [1] * 4
    # Wide layers and many runs at once: creating them mapped would never end.
    wide = replace(SMALL, setups=setups, fleet=True, seeds=3, networks=ActorConfig())
    ((contender, _),) = Program(wide, loaded).start()
    noops = contender.learner.networks.actor.noop
    assert not np.array_equal(noops[0], noops[1])
    np.testing.assert_array_equal(noops[0], noops[3])
    general: Any = Program(replace(SMALL, setups=setups), loaded)
    assert len(general.runs) == 2
    (group,) = general.groups
    sizes = np.asarray(group.arena.games.rules.size)  # run, game, task
    assert (sizes[0, :2, 2:] == 0).all()  # two games of 2x3, with two fires
    assert (sizes[0, 2:] > 0).all()  # two of 3x3, with four
    _, metrics = general.advance(general.start(), 1)
    assert general.in_order(metrics["return"]).shape == (2,)
    assert general.in_order(metrics["setup_return"]).shape == (2, len(setups))


def test_trainings_of_a_kind_are_compiled_once():
    """Seeds are data, and so are setups of one size."""

    def begun(learning: Learning, **changes: Any) -> Any:
        config = replace(SMALL, learning=learning, **changes)
        loaded = {name: plato.load_setup(name) for name in config.setups}
        program = Program(config, loaded)
        program.advance(program.start(), 1)
        (group,) = program.groups
        return group

    own = replace(SMALL.learning, clip=0.15, beginnings=1)  # of no other test
    first = begun(own)
    for other in (begun(own, seed=7), begun(own, setups=("wildfire-2x3-S1",))):
        assert other._create is first._create
        assert other._update is first._update
    assert first._create._cache_size() == first._update._cache_size() == 1
    assert begun(SMALL.learning)._update is not first._update


def test_scattered_games_have_room_for_more_fires_and_noise_of_their_own():
    loaded = {name: plato.load_setup(name) for name in SMALL.setups}
    program: Any = Program(replace(SMALL, maps="scattered"), loaded)
    (group,) = program.groups
    most = max(setup.rows.tasks for setup in loaded.values())
    assert group.arena.games.rules.size.shape[-1] == most + MORE_FIRES
    _, metrics = program.advance(program.start(), 1)
    assert np.isfinite(program.in_order(metrics["policy_loss"])).all()
    with pytest.raises(PlatoError, match="noise='paper' is a record"):
        replace(SMALL, maps="scattered", noise="paper")


def test_too_few_games_for_other_maps_are_refused():
    """Of each setup; those of a fleet do not share theirs."""

    def config(games: int, **changes: Any) -> TrainConfig:
        few = replace(SMALL.learning, games=games, minibatches=1)
        return replace(SMALL, learning=few, **changes)

    three: Any = {"setups": tuple(f"wildfire-2x3-S{i}" for i in range(3))}
    assert FEWEST_GAMES["moved"] == range(99)[MOVED][0] + 1
    for maps, which in SCATTERED.items():
        assert FEWEST_GAMES[cast(Maps, maps)] == range(99)[which][0] + 1
    for maps in ("moved", "scattered", "strange"):
        fewest = FEWEST_GAMES[maps]
        words = rf"games=\d+ are too few for maps='{maps}': none .* choose games="
        config(fewest, maps=maps)
        config(fewest, maps=maps, fleet=True, **three)
        config(3 * fewest, maps=maps, **three)
        for fleet in (False, True):
            with pytest.raises(PlatoError, match=f"{words}{fewest} or more"):
                config(fewest - 1, maps=maps, fleet=fleet)
        with pytest.raises(PlatoError, match=f"{words}{3 * fewest} or more"):
            config(3 * fewest - 3, maps=maps, **three)
    config(1, maps="own")


@pytest.mark.parametrize(("anywhere", "maps"), [(True, "moved"), (False, "own")])
def test_runs_whose_maps_were_anywhere_can_be_read(tmp_path, anywhere, maps):
    """As configurations were written before there were scattered maps."""
    config = replace(SMALL, maps=maps)
    folder = RunFolder.create(tmp_path / "run", config)
    path = folder.path / "config.toml"
    old = path.read_text().replace(f'maps = "{maps}"', f"anywhere = {anywhere}".lower())
    assert "anywhere" in old
    path.write_text(old)
    assert folder.config() == config
    for also in ({"anywhere": "north"}, {"anywhere": anywhere, "maps": maps}):
        with pytest.raises(PlatoError, match="anywhere is not a known field"):
            TrainConfig.from_mapping({"setups": ["wildfire-2x3-S3"]} | also)


def test_resume_on_new_maps_equals_uninterrupted(tmp_path, resumed):
    """Killed between two rounds of maps, and in the middle of one."""
    config = replace(SMALL, maps="scattered", new_maps=2)
    whole = RunFolder.create(tmp_path / "whole", config)
    assert train(whole)
    for after in (2, 3):
        assert contents(resumed(config, after)) == contents(whole)


def test_games_that_are_moved_have_maps_of_their_own():
    loaded = {name: plato.load_setup(name) for name in SMALL.setups}
    settings = replace(SMALL, maps="moved", noise="paper")
    program: Any = Program(settings, loaded)
    cells = np.asarray(
        program.groups[0].arena.games.game.rules.cell
    )  # run, game, task, axis
    assert len({one.tobytes() for one in cells.reshape(-1, *cells.shape[2:])}) > 2
    plain: Any = Program(replace(SMALL, noise="paper"), loaded)
    as_is = np.asarray(plain.groups[0].arena.games.game.rules.cell)
    assert len({one.tobytes() for one in as_is.reshape(-1, *as_is.shape[2:])}) == 1
    # The noise is that of the setup, wherever its map lies.
    records = (p.groups[0].arena.games.record for p in (program, plain))
    jax.tree.map(np.testing.assert_array_equal, *records)


def test_runs_that_differ_in_size_have_programs_of_their_own():
    sizes = [Rows(3, 2), Rows(6, 6), Rows(3, 4), Rows(6, 6)]
    assert grouped(sizes, "aaaa") == [[1, 3], [0, 2]]
    assert grouped([Rows(3, 4)], "a") == [[0]]
    # What differs in more than rows does not go together, whatever comes between.
    assert grouped(sizes, "abaa") == [[1], [3], [0, 2]]
    assert grouped([Rows(3, 4)] * 4, "abab") == [[0, 2], [1, 3]]
    setups = ("wildfire-2x3-S3", "wildfire-4x4-S1", "wildfire-3x3-S1")
    loaded = {name: plato.load_setup(name) for name in setups}
    fleet = Program(replace(SMALL, setups=setups, fleet=True, seeds=1), loaded)
    assert [[str(run.setups[0]) for run in g.runs] for g in fleet.groups] == [
        ["wildfire-4x4-S1"],
        ["wildfire-2x3-S3", "wildfire-3x3-S1"],
    ]
    learners, metrics = fleet.advance(fleet.start(), 1)
    alone = Program(replace(SMALL, setups=setups[1:2], fleet=True, seeds=1), loaded)
    _, lonely = alone.advance(alone.start(), 1)
    both = fleet.in_order(metrics["reward"])
    assert both.shape == (3,)
    np.testing.assert_allclose(both[1], lonely["reward"][0][0], rtol=1e-5)
    first, shape = fleet.policies(learners)[1]
    assert shape.agents == 6
    assert isinstance(first, PointerActor)
    best = int(np.argmax([contender.score[0] for contender in learners[0]]))
    noops = learners[0][best].learner.networks.actor.noop
    np.testing.assert_array_equal(first.noop, noops[0])


def test_setups_whose_arrays_differ_are_trained_apart_alone():
    home = plato.load_setup("wildfire-2x3-S3")
    agent = replace(
        home.config.agent,
        possible_capacities=(1.0, 2.0, 3.0, 4.0),
        capacity_probabilities=(0.0, 1.0, 0.0, 0.0),
    )
    loaded = {
        "home": home,
        "tanks": Setup("tanks", replace(home.config, agent=agent)),
        "long": Setup("long", replace(home.config, max_steps=60)),
    }
    fleet = replace(SMALL, setups=("home", "tanks"), fleet=True, seeds=2)
    groups = Program(fleet, loaded).groups
    assert [[run.setups[0] for run in group.runs] for group in groups] == [
        ["home", "home"],
        ["tanks", "tanks"],
    ]
    with pytest.raises(
        PlatoError,
        match=r"2x3-S3 and tanks cannot .* rules\.tanks \(\[3\] and \[4\]\).*--fleet",
    ):
        Program(replace(fleet, fleet=False), loaded)
    noisy = replace(fleet, setups=("home", "long"), noise="paper", seeds=1)
    assert len(Program(noisy, loaded).groups) == 2
    assert len(Program(replace(noisy, noise="independent"), loaded).groups) == 1
    with pytest.raises(PlatoError, match=r"record\.field .*--fleet"):
        Program(replace(noisy, fleet=False), loaded)


def test_training_under_the_papers_noise():
    config = replace(SMALL, noise="paper", seeds=1)
    loaded = {name: plato.load_setup(name) for name in config.setups}
    program = Program(config, loaded)
    _, metrics = program.advance(program.start(), 1)
    assert np.isfinite(program.in_order(metrics["value_loss"])).all()


def test_a_policy_learns():
    """A few seconds of training are enough to beat chance by far."""
    config = replace(
        SMALL,
        setups=("wildfire-2x3-S3",),
        seeds=1,
        networks=ActorConfig(hidden=16, depth=1),
        learning=MappoConfig(
            games=16, steps=25, updates=40, minibatches=2, entropy=0.03
        ),
    )
    loaded = {name: plato.load_setup(name) for name in config.setups}
    program = Program(config, loaded)
    learner = program.start()
    for update in range(40):
        learner, _ = program.advance(learner, update + 1)
    ((actor, _),) = program.policies(learner)
    trained = plato.evaluate(actor, "wildfire-2x3-S3", episodes=400).metrics["return"]
    chance = plato.evaluate("random", "wildfire-2x3-S3", episodes=400).metrics["return"]
    assert trained.mean() > chance.mean() + 15


def test_a_folder_that_holds_a_run_is_not_touched(finished):
    before = contents(finished)
    with pytest.raises(PlatoError, match="holds a run already"):
        RunFolder.create(finished.path, SMALL)
    assert contents(finished) == before


def test_a_run_does_not_go_on_with_another_game(finished, tmp_path):
    folder = RunFolder(Path(shutil.copytree(finished.path, tmp_path / "copy")))
    games = folder.path / "games.json"
    noted = json.loads(games.read_text())
    assert noted == {name: plato.load_setup(name).digest for name in SMALL.setups}
    games.write_text(json.dumps(dict.fromkeys(noted, "of another day")))
    with pytest.raises(PlatoError, match=r"is not the game that .*copy was begun with"):
        train(folder)


def test_what_is_not_a_run_is_refused(tmp_path):
    with pytest.raises(PlatoError, match="is not the folder of a run"):
        train(RunFolder(tmp_path))


def test_a_state_of_another_architecture_is_refused(finished, tmp_path):
    other = replace(SMALL, networks=ActorConfig(hidden=16))
    folder = RunFolder.create(tmp_path / "other", other)
    state = (finished.path / "state.safetensors").read_bytes()
    (folder.path / "state.safetensors").write_bytes(state)
    setups = {name: plato.load_setup(name) for name in other.setups}
    with pytest.raises(PlatoError, match="is of another architecture"):
        folder.load_state(Program(other, setups).after(6))


def test_policies_are_kept_with_what_others_saw_of_an_agent(finished):
    for run in SMALL.runs:
        header = read_header(finished.checkpoints(run)[-1])
        assert header["public"] == [True, True, False, True]


def test_there_is_no_return_before_an_episode_ends(tmp_path):
    folder = RunFolder.create(tmp_path / "run", SMALL)
    folder.keep_metrics(SMALL.runs, 0)
    row = {"episodes": np.array([0, 2]), "return": np.array([0.0, 3.5])}
    folder.add_metrics(SMALL.runs, [row])
    first, second = (folder.read_metrics(run)[0]["return"] for run in SMALL.runs)
    assert first is None
    assert second == 3.5
    for returns, words in (([np.nan, 3.5], "3.5"), ([np.nan, np.nan], "–")):
        progress = loop.Progress(1, 2, 1.0, 1.0, row, np.array(returns))
        assert progress.mean_return == words


def test_broken_checkpoints_are_refused(finished, tmp_path):
    whole = finished.checkpoints(SMALL.runs[0])[-1].read_bytes()
    path = tmp_path / "policy.safetensors"
    for broken in (b"", whole[:100], whole[:-50], b"x" * 4000):
        path.write_bytes(broken)
        with pytest.raises(
            PlatoError, match=r"policy\.safetensors: is not a checkpoint"
        ):
            load_actor(path)
    with pytest.raises(PlatoError, match="no such file"):
        load_actor(tmp_path / "none.safetensors")
    with pytest.raises(PlatoError, match="holds a 'state', not a policy"):
        load_actor(finished.path / "state.safetensors")


def test_a_checkpoint_gives_the_same_policy_back(tmp_path):
    config = ActorConfig(hidden=8, heads=2, context="pointer")
    shape = PaddedShape(3, 4, 4)
    actor = PointerActor.create(config, shape.features, key=jax.random.key(3))
    save_policy(tmp_path / "a.safetensors", actor, config, shape, {"note": "ü"})
    back = load_actor(tmp_path / "a.safetensors")
    jax.tree.map(np.testing.assert_array_equal, actor, back)
    assert jax.tree.structure(actor) == jax.tree.structure(back)
