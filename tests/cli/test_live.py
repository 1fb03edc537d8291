"""What is shown while something goes on, and what Ctrl-C says then."""

import io
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from command_line import PROGRAM
from compiling import AS_USERS_DO
from plato.cli import live
from plato.cli.live import Lines, clock, live_lines
from plato.cli.progress import Told
from plato.experiments import suite
from plato.experiments.store import Entry
from plato.runs.train import Progress

PACE = "ETA 1 day, 10:17:36  1,234,567,890 steps/s"
NEWS = "return -1234.5  entropy 0.36  KL 0.0027  epsilon 0.90  value loss 12345.678"
SMALL = (
    *("--setup", "wildfire-2x3-S3", "--games", "4", "--steps", "10", "--updates", "4"),
    *("--minibatches", "2", "--hidden", "8", "--out", "a run"),
)
ASKED = "Continue with: plato train --resume 'a run'\n"


def printed(out: Console) -> str:
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


@pytest.mark.parametrize("width", [80, 88, 100, 120])
def test_two_lines_have_room_for_everything(width):
    out = Console(width=width, file=io.StringIO(), highlight=False)
    lines = Lines(100_000)
    lines.show(99_999, PACE, NEWS)
    out.print(lines)
    first, second = printed(out).splitlines()
    assert first.startswith(" 99999/100000 ━")
    assert first.endswith(f" 0:00:00  {PACE}")
    assert second == NEWS


def test_a_narrow_terminal_goes_without_the_bar():
    out = Console(width=40, file=io.StringIO(), highlight=False)
    lines = Lines(100)
    lines.show(7, PACE, NEWS)
    out.print(lines)
    assert printed(out).split() == f"7/100 0:00:00 {PACE} {NEWS}".split()


def test_a_terminal_has_lines_that_change():
    out = Console(width=80, file=io.StringIO(), force_terminal=True)
    with live_lines(out, 100) as lines:
        lines.show(7, PACE, NEWS)
    assert "\x1b[?25l" in printed(out)  # no cursor meanwhile
    assert NEWS in printed(out)


def test_a_file_has_a_plain_line_now_and_then_and_at_the_end(monkeypatch):
    monkeypatch.setattr(live, "PAUSE", 0.05)
    out = Console(width=80, file=io.StringIO(), highlight=False)
    with live_lines(out, 100) as lines:
        lines.show(7, PACE, NEWS)
        while not printed(out):
            time.sleep(0.01)
        lines.show(100, PACE)
    first, *_, last = printed(out).splitlines()
    assert first == f"  7/100  0:00:00  {PACE}  {NEWS}"
    assert last == f"100/100  0:00:00  {PACE}"


@pytest.mark.parametrize("terminal", [True, False])
def test_what_goes_wrong_is_not_followed_by_how_far_it_was(terminal):
    out = Console(width=80, file=io.StringIO(), force_terminal=terminal)
    with pytest.raises(ValueError, match="gone wrong"), live_lines(out, 100):
        raise ValueError("gone wrong")
    shown = printed(out)
    assert shown.endswith("\x1b[1A\x1b[2K") if terminal else not shown


def test_time_in_words():
    assert clock(3661.9) == "1:01:01"
    assert clock(float("nan")) == "–"


def interrupted(
    folder: Path, line: str, *command: str, **environment: str
) -> tuple[str, str, int]:
    """A real training, or another command, that Ctrl-C meets as soon as it prints a
    line that begins so."""
    # Whoever starts tests in the background may have it ignore Ctrl-C.
    heard = "import signal; signal.signal(2, signal.default_int_handler)\n"
    process = subprocess.Popen(
        [sys.executable, "-c", heard + PROGRAM, *(command or ("train", *SMALL))],
        cwd=folder,
        env=AS_USERS_DO | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    while not process.stdout.readline().startswith(line):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return out, err, process.returncode


def test_ctrl_c_while_it_compiles_says_how_to_go_on(plato, tmp_path):
    nothing = str(tmp_path / "nothing is compiled yet")
    out, err, code = interrupted(
        tmp_path, "Training 1 run", JAX_COMPILATION_CACHE_DIR=nothing
    )
    assert (out.splitlines()[-1] + "\n", err, code) == (f"Stopped. {ASKED}", "", 130)
    assert not (tmp_path / "a run" / "state.safetensors").exists()
    result = plato("train", "--resume", "a run")
    assert result.returncode == 0, result.stderr


def test_ctrl_c_while_it_evaluates_says_how_to_go_on(plato, tmp_path):
    out, err, code = interrupted(tmp_path, "4/4  ")
    assert (out, err, code) == (f"Stopped. {ASKED}", "", 130)
    assert not (tmp_path / "a run" / "summary.html").exists()
    result = plato("train", "--resume", "a run")
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "a run" / "summary.html").exists()


def half_way() -> Progress:
    return Progress(
        update=5,
        updates=10,
        steps_per_second=12_345.6,
        seconds_left=1.0,
        metrics={},
        returns=np.array([2.0, 4.0]),
    )


def test_a_reproduction_tells_time_by_its_trainings():
    given, *trained = suite.cells(
        ("given", "methods"),
        suite.protocols(["field"]),
        methods=["NOOP", "PLATO"],
        setups=["wildfire-2x3-S0"],
        seeds=2,
    )
    out, lines = Console(file=io.StringIO(), width=160), Lines(3)
    told = Told([given, *trained], lines, out)
    told.begins([given])
    assert (lines.pace, lines.news) == ("ETA –", str(given))
    told.done(given, Entry("", {"episodes": {"": {"return": [[-4.0]]}}, "seconds": {}}))
    assert printed(out) == f"{given}: return -4.00, 0 s\n"
    assert (lines.done, lines.pace, lines.news) == (1, "ETA –", "")
    told.begins([trained[0]])
    assert (lines.pace, lines.news) == ("ETA –", str(trained[0]))
    told.first_training = time.monotonic() - 100  # and a quarter of all is done
    told.trains(half_way())
    assert lines.pace == "ETA 0:05:00  12,346 steps/s"
    assert lines.news == f"{trained[0]}  50 %  return 3.0"
    told.begins(trained)
    assert lines.news == "PLATO × 2"
    told.begins([*trained, given])
    assert lines.news == "PLATO × 2, NOOP"


def test_ctrl_c_in_a_reproduction_says_that_it_can_go_on(tmp_path):
    what = ("--only", "native", "--methods", "PLATO", "--setup", "wildfire-2x3-S0")
    how = ("--seeds", "1", "--protocol", "field", "--engine", "local")
    _, err, code = interrupted(tmp_path, "1 cell(s)", "reproduce", *what, *how)
    kept = "plato: stopped. What is done is kept; the same command goes on.\n"
    assert (err, code) == (kept, 130)


def test_ctrl_c_in_a_search_does_not_wait_for_compilers(tmp_path):
    what = ("--method", "plato", "--setup", "wildfire-2x3-S0", "--trials", "4")
    nothing = str(tmp_path / "nothing is compiled yet")
    _, err, code = interrupted(
        tmp_path, "0/4  ", "tune", *what, JAX_COMPILATION_CACHE_DIR=nothing
    )
    kept = "plato: stopped. What is done is kept; the same command goes on.\n"
    assert (err, code) == (kept, 130)
    assert (tmp_path / "tuning" / "plato" / "study.journal").exists()


HELD_UP = """
import threading
from plato.cli.tuning import Tune

def run(self):
    threading.Thread(target=threading.Event().wait).start()  # it never ends
    raise KeyboardInterrupt

Tune.run = run
"""


def test_who_leaves_a_search_leaves_its_threads_behind(tmp_path):
    """Otherwise this process would not end, and the test not pass."""
    done = subprocess.run(
        [sys.executable, "-c", HELD_UP + PROGRAM, "tune", "--method", "dgn"],
        cwd=tmp_path,
        env=AS_USERS_DO,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr.startswith("plato: stopped.")
    assert done.returncode == 130
