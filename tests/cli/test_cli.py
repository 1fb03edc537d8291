"""The command line as a person meets it: output, exit codes, errors in one sentence."""

import ast
import inspect
import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest

from command_line import refused, start_plato
from plato.cli.commands import Train
from plato.cli.main import COMMANDS
from plato.domains.setups import load_setup, setup_names, setup_toml
from plato.learners.budget import Budget
from plato.learners.config import METHODS, CommonSettings

ONCE = ("--setup", "wildfire-2x3-S0", "--episodes", 1)
RECORDINGS = sorted((Path(__file__).parents[1] / "conformance").glob("*.json.gz"))


def test_help_does_not_import_jax(plato):
    result = plato("--help")
    assert result.returncode == 0
    for command in ("setups", "evaluate", "verify", "reproduce"):
        assert command in result.stdout
    code = "import plato, plato.cli.main, sys; print('jax' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_version(plato):
    import plato as package

    assert plato("--version").stdout.strip() == f"plato {package.__version__}"


def test_a_wrong_command_line_is_sent_to_the_help_that_has_it(plato):
    for line, page in (
        (["train", "--adam-epsilo", 1], "plato train --help"),
        (["train", "--method", "dicg", "--pat", 1], "train --method dicg --help"),
        (["evaluate", "--seeds", 1], "plato evaluate --help"),
        (["trian"], "plato --help"),
        ([], "plato --help"),
    ):
        result = plato(*line)
        assert result.returncode == 2
        assert page in result.stderr, result.stderr
        assert "Traceback" not in result.stderr


FLAGS: list[type] = [Budget, CommonSettings, *COMMANDS.values()]
FLAGS += [half for halves in METHODS.values() for half in halves]


@pytest.mark.parametrize("kind", FLAGS, ids=lambda kind: kind.__name__)
def test_every_flag_has_help(kind):
    """Below each field that becomes a flag there is a line that says what it is."""
    (found,) = ast.parse(inspect.getsource(kind)).body
    body = cast(ast.ClassDef, found).body
    for one, following in pairwise([*body, ast.Pass()]):
        if not isinstance(one, ast.AnnAssign):
            continue
        name = ast.unparse(one.target)
        if (kind, name) in {(Train, "networks"), (Train, "learning")}:
            continue  # of these each field is a flag
        helped = isinstance(following, ast.Expr) and ast.literal_eval(following.value)
        assert helped, f"{kind.__name__}.{name} has no help"


def test_a_process_has_its_streams_and_exit_codes(tmp_path):
    result = start_plato(tmp_path, "evaluate", "--policy", "noop", *ONCE)
    assert result.returncode == 0
    assert "noop" in result.stdout
    assert not result.stderr
    refused(start_plato(tmp_path, "evaluate", "--policy", "best", *ONCE), "'best'")


def test_setups_lists_each_with_a_line(plato):
    lines = plato("setups").stdout.splitlines()
    assert [line.split()[0] for line in lines] == setup_names()


def test_setups_show_prints_the_configuration_and_the_grid(plato):
    shown = plato("setups", "show", "wildfire-3x3-S2").stdout
    assert setup_toml(load_setup("wildfire-3x3-S2").config) in shown
    assert "A1·2" in shown
    assert "F2·2" in shown


def test_evaluate_prints_a_table_and_writes_json(plato, tmp_path):
    result = plato(
        *("evaluate", "--policy", "weakest", "--policy", "noop"),
        *("--setup", "wildfire-3x3-S2", "--setup", "wildfire-3x3-S1"),
        *("--episodes", 5, "--seed", 200, "--out", "deep/down/result.json"),
    )
    assert result.returncode == 0, result.stderr
    assert "5 episodes (seeds 200–204), independent noise" in result.stdout
    data = json.loads((tmp_path / "deep/down/result.json").read_text())
    pairs = [(row["setup"], row["policy"]) for row in data["evaluations"]]
    assert pairs == [
        ("wildfire-3x3-S2", "weakest"),
        ("wildfire-3x3-S2", "noop"),
        ("wildfire-3x3-S1", "weakest"),
        ("wildfire-3x3-S1", "noop"),
    ]
    idle = data["evaluations"][3]["metrics"]["return"]
    assert idle["episodes"] == [-8.0] * 5
    assert "-8.00 ± 0.00" in result.stdout


def test_evaluate_takes_a_setup_of_ones_own(plato, tmp_path):
    copied = plato("setups", "show", "wildfire-2x3-S0", "--out", "mine.toml")
    assert copied.stdout == "The setup: mine.toml\n"
    mine = load_setup(tmp_path / "mine.toml")
    assert mine.config == load_setup("wildfire-2x3-S0").config
    again = plato("setups", "show", "wildfire-2x3-S1", "--out", "mine.toml")
    refused(again, "mine.toml", "is there already")
    refused(plato("setups", "show", "wildfire-2x3-S1", "--out", "mine"), ".toml")
    refused(plato("setups", "--out", "mine.toml"), "plato setups show NAME")
    result = plato("evaluate", "--policy", "noop", "--setup", "mine.toml")
    assert result.returncode == 0, result.stderr
    assert "mine" in result.stdout


def with_line(name: str, old: str, new: str) -> str:
    text = setup_toml(load_setup(name).config)
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[fire]", "[fire]\nglow = 1", ("fire.glow", "not a known field")),
        (
            "burnout_probability = 0.5",
            "burnout_probability = 1.2",
            ("fire.burnout_probability", "from 0 to 1", "1.2"),
        ),
        ("grid_width = 3", "grid_width = 5", ("fire.fire_types", "3x3", "3x5")),
        ("  [2, 2],", "  [7, 7],", ("agent.agents[2]", "(7, 7)", "off the 3x3 grid")),
        (
            "degrade_probability = 0.0\ncritical_error_probability = 0.0",
            "degrade_probability = 0.8\ncritical_error_probability = 0.4",
            ("agent.degrade_probability", "critical_error_probability", "at most 1"),
        ),
        ("grid_width = 3", "grid_width = ", ("not valid TOML",)),
        ('domain = "wildfire"', 'domain = ["wildfire"]', ("domain is ['wildfire']",)),
        ("initial_fuel = 1000", "initial_fuel = 9999999999", ("fire.initial_fuel",)),
        ("burnout_penalty = 0.0", "burnout_penalty = -1e300", ("burnout_penalty",)),
        ("[fire]", '[fire]\n"a\\nb" = 1', ("is not a known field",)),
    ],
)
def test_a_wrong_setup_is_refused(plato, tmp_path, old, new, words):
    (tmp_path / "mine.toml").write_text(with_line("wildfire-3x3-S3", old, new))
    (tmp_path / "evaluation.json").write_text("kept")
    result = plato("evaluate", "--policy", "noop", "--setup", "mine.toml")
    refused(result, "mine.toml", *words)
    assert (tmp_path / "evaluation.json").read_text() == "kept"


def test_wrong_names_and_numbers_are_refused(plato):
    setup = ("--setup", "wildfire-3x3-S1")
    refused(
        plato("evaluate", "--policy", "noop", "--setup", "x"), "'x'", "plato setups"
    )
    refused(plato("evaluate", "--policy", "best", *setup), "'best'", "weakest")
    refused(plato("evaluate", "--policy", "noop", *setup, "--episodes", 0), "episodes")
    refused(plato("evaluate"), "--setup", "--policy")
    refused(plato("verify"), "at least one recording")
    refused(plato("setups", "list", "x"), "plato setups show x")
    refused(plato("setups", "show"), "needs the name")
    refused(plato("setups", "show", "none"), "'none'")


def test_an_output_that_cannot_be_written_is_refused(plato, tmp_path):
    (tmp_path / "file").write_text("kept")
    result = plato(
        *("evaluate", "--policy", "noop", "--setup", "wildfire-2x3-S0"),
        *("--episodes", 2, "--out", "file/result.json"),
    )
    refused(result, "file/result.json", "cannot be written")
    assert (tmp_path / "file").read_text() == "kept"


def test_a_device_is_not_replaced_by_a_file(plato, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    result = plato(
        *("evaluate", "--policy", "noop", "--setup", "wildfire-2x3-S0"),
        *("--episodes", 2, "--out", "pipe"),
    )
    refused(result, "pipe", "not a plain file")
    assert (tmp_path / "pipe").is_fifo()


def test_all_recordings_agree(tmp_path):
    result = start_plato(tmp_path, "verify", *RECORDINGS)
    assert result.returncode == 0, result.stderr
    total = "1323 transitions checked in 16 file(s): 0 with a difference, 0 unreadable."
    assert total in result.stdout


def test_verify_fails_on_a_difference_and_goes_on(plato, tmp_path):
    import gzip

    data = json.loads(gzip.decompress(RECORDINGS[15].read_bytes()))
    data["steps"][1]["state"]["fuel"][0][0][0] += 1
    (tmp_path / "changed.json").write_text(json.dumps(data))
    result = plato("verify", "changed.json", RECORDINGS[15])
    assert result.returncode == 1
    assert "changed.json: 3 transitions agree, then a difference" in result.stdout
    assert "after step 1, game 0: state.fuel[0][0]" in result.stdout
    assert "19 transitions agree" in result.stdout


def test_verify_refuses_a_recording_that_is_cut_short(plato, tmp_path):
    whole = RECORDINGS[15].read_bytes()
    (tmp_path / "cut.json.gz").write_bytes(whole[:3000])
    refused(plato("verify", "cut.json.gz"), "cut.json.gz", "cut short")


def test_all_360_published_heuristic_numbers_are_reproduced(tmp_path):
    result = start_plato(tmp_path, "reproduce", "--only", "heuristics")
    assert result.returncode == 0, result.stderr
    assert "360 of 360 numbers agree" in result.stdout
    assert "161.24±12.37 (161.24±12.37)" in result.stdout


SMALL = (
    *("--setup", "wildfire-2x3-S3", "--games", 4, "--steps", 10, "--updates", 4),
    *("--minibatches", 2, "--hidden", 8, "--checkpoints", 2),
)


def test_train_evaluates_and_summarises(plato, tmp_path):
    result = plato("train", *SMALL, "--seeds", 2)
    assert result.returncode == 0, result.stderr
    assert "plato seed 42" in result.stdout
    assert "plato seed 43" in result.stdout
    # Into a pipe, too, it says how far it is.
    how_far = (
        r"\n4/4  \S+  ETA 0:00:00  \S+ steps/s  return \S+  entropy .*  KL .*  value"
    )
    assert re.search(how_far, result.stdout)
    run = tmp_path / "runs" / "wildfire-2x3-S3"
    assert "| wildfire-2x3-S3 | plato seed 43 |" in (run / "SUMMARY.md").read_text()
    assert "plato seed 43" in (run / "summary.html").read_text()
    again = plato("train", *SMALL)
    refused(again, "holds a run already", "--resume")

    checkpoints = run / "checkpoints" / "wildfire-2x3-S3-seed43"
    played = plato(
        *("evaluate", "--setup", "wildfire-4x4-S2", "--episodes", 3),
        *("--policy", checkpoints, "--policy", checkpoints / "000002.safetensors"),
    )
    assert played.returncode == 0, played.stderr
    refused(
        plato("evaluate", "--setup", "wildfire-4x4-S2", "--policy", run), "2 trainings"
    )


def test_train_takes_a_configuration_and_resumes(plato, tmp_path):
    assert plato("train", *SMALL, "--out", "first", "--paper-form").returncode == 0
    text = (tmp_path / "first" / "config.toml").read_text()
    assert 'query = "statistics"' in text
    assert "ego = false" in text
    assert (
        plato("train", "--config", "first/config.toml", "--out", "second").returncode
        == 0
    )
    last = "checkpoints/wildfire-2x3-S3-seed42/000004.safetensors"
    one, other = ((tmp_path / name / last).read_bytes() for name in ("first", "second"))
    assert one == other
    elsewhere = ("--setup", "wildfire-2x3-S0", "--out", "third")
    assert plato("train", "--config", "first/config.toml", *elsewhere).returncode == 0
    assert (tmp_path / "third/checkpoints/wildfire-2x3-S0-seed42").is_dir()
    the_same = (*SMALL, "--out", "first", "--paper-form")
    for again in (("--resume", "first"), the_same):  # finished: evaluates again
        resumed = plato("train", *again)
        assert resumed.returncode == 0
        assert "plato seed 42" in resumed.stdout
    other = plato("train", "--resume", "first", "--seeds", 3, "--hidden", 4)
    refused(other, "--resume reads all settings from a file", "(--seeds, --hidden)")
    # Also what says no more than what would be left out.
    same = plato("train", "--resume", "first", "--hidden=128", "--actor_rate", 2e-3)
    refused(same, "(--hidden, --actor-rate)")
    same = plato("train", "--config", "first/config.toml", "--updates", 375)
    refused(same, "--config reads all settings from a file", "(--updates)")
    refused(plato("train", *SMALL, "--paper-form", "--ego"), "leave out --ego")
    refused(plato("train", *SMALL, "--game-seed", 199, "--seeds", 2), "200–249")


def test_wrong_trainings_are_refused(plato, tmp_path):
    refused(plato("train"), "--setup", "--config", "--resume")
    refused(plato("train", "--setup", "x"), "'x'")
    refused(plato("train", *SMALL, "--hidden", 0), "actor.hidden")
    refused(plato("train", *SMALL, "--minibatches", 7), "minibatches=7", "5 or 8.")
    refused(plato("train", *SMALL, "--minibatches", 99), "such as 40.")
    refused(plato("train", "--resume", "nothing"), "is not the folder of a run")
    refused(
        plato("evaluate", "--setup", "wildfire-2x3-S0", "--policy", "a.safetensors")
    )
    (tmp_path / "wrong.toml").write_text('setups = ["wildfire-2x3-S0"]\nsteps = 3\n')
    refused(plato("train", "--config", "wrong.toml"), "steps is not a known field")
    assert not (tmp_path / "runs").exists()


def test_solve_says_what_it_takes_and_what_is_best(plato, tmp_path):
    solved = plato("solve", "wildfire-2x3-S3", "--out", "best.safetensors")
    assert solved.returncode == 0, solved.stderr
    assert "675 states, 18 joint actions" in solved.stdout
    assert "84.132" in solved.stdout
    played = plato(
        *("evaluate", "--setup", "wildfire-2x3-S3", "--episodes", 5),
        *("--policy", "optimal", "--policy", "best.safetensors"),
    )
    assert played.returncode == 0, played.stderr
    data = json.loads((tmp_path / "evaluation.json").read_text())["evaluations"]
    first, second = (row["metrics"]["return"]["episodes"] for row in data)
    assert first == second


def test_wrong_solutions_are_refused(plato, tmp_path):
    refused(plato("solve"), "at least one setup")
    refused(plato("solve", "nowhere"), "'nowhere'")
    refused(plato("solve", "wildfire-4x4-S3", "--memory-gb", 1), "1.14e+07 states")
    names = ("wildfire-2x3-S0", "wildfire-2x3-S1")
    refused(plato("solve", *names, "--out", "a.safetensors"), "a single setup")
    refused(plato("solve", names[0], "--out", "a.txt"), ".safetensors")
    assert not list(tmp_path.iterdir())
