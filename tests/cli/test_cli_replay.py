"""`plato replay` and `plato watch` as a person meets them."""

import io
import sys
import webbrowser

from rich.console import Console

from command_line import refused

SETUP = ("--setup", "wildfire-2x3-S3")


def test_replay_writes_a_page_and_says_what_it_holds(plato, tmp_path):
    result = plato("replay", "weakest", "best=optimal", *SETUP, "--seed", 203)
    assert result.returncode == 0, result.stderr
    assert "weakest: return" in result.stdout
    assert "best: return" in result.stdout
    text = (tmp_path / "replay.html").read_text()
    assert '"name": "best"' in text
    assert "Replay of wildfire-2x3-S3, seed 203" in text
    evaluated = plato(
        "evaluate", "--policy", "weakest", *SETUP, "--seed", 203, "--episodes", 1
    )
    (line,) = (line for line in result.stdout.splitlines() if "weakest" in line)
    assert line.split()[2] in evaluated.stdout


def test_replay_of_a_trained_run_on_the_papers_noise(plato, additive, tmp_path):
    folder = additive / "checkpoints" / "wildfire-2x3-S3-seed42"
    result = plato(
        *("replay", folder, "weakest", "--noise", "paper", *SETUP),
        *("--out", "deep/strip.png"),
    )
    assert result.returncode == 0, result.stderr
    assert "wildfire-2x3-S3-seed42: return" in result.stdout
    assert (tmp_path / "deep" / "strip.png").stat().st_size > 1000


def test_replay_opens_the_browser_when_asked(plato, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    assert plato("replay", "noop", *SETUP, "--open").returncode == 0
    assert opened == [(tmp_path / "replay.html").as_uri()]


def test_wrong_replays_are_refused(plato, tmp_path, monkeypatch):
    refused(plato("replay", "best", *SETUP), "'best'", "weakest")
    refused(plato("replay", *SETUP), "at least one policy")
    refused(plato("replay", "noop", "--setup", "x"), "'x'", "plato setups")
    refused(plato("replay", "noop", "noop", *SETUP), "called 'noop'", "NAME=POLICY")
    refused(plato("replay", "noop", *SETUP, "--seed", -1), "seed")
    refused(plato("replay", "noop", *SETUP, "--out", "a.mp4"), "a.mp4", ".html")
    (tmp_path / "file").write_text("kept")
    refused(
        plato("replay", "noop", *SETUP, "--out", "file/a.html"), "cannot be written"
    )
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    refused(plato("replay", "noop", *SETUP, "--out", "a.gif"), "plato-marl[plots]")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_watch_prints_every_moment_into_a_pipe(plato):
    result = plato("watch", "weakest", "--setup", "wildfire-2x3-S0")
    assert result.returncode == 0, result.stderr
    moments = result.stdout.split("weakest on wildfire-2x3-S0, seed 200   ")[1:]
    assert moments[0].startswith("step 0 of")
    assert "F1·1" in moments[0]
    assert "is put out" in result.stdout
    assert "0 fires, " in moments[-1]
    assert "return 4 " in moments[-1]


def test_watch_tells_where_a_pointer_points(plato, additive):
    folder = additive / "checkpoints" / "wildfire-2x3-S3-seed42"
    result = plato("watch", folder, *SETUP)
    assert result.returncode == 0, result.stderr
    assert "where it points" in result.stdout
    assert "NOOP" in result.stdout
    assert "%" in result.stdout


def test_watch_draws_over_itself_in_a_terminal():
    from plato.cli.replaying import watch_episode
    from plato.domains.setups import load_setup

    screen = Console(file=io.StringIO(), force_terminal=True, width=80, height=40)
    watch_episode(
        load_setup("wildfire-2x3-S0"),
        "weakest",
        seed=200,
        noise="independent",
        actions="own",
        speed=1e6,
        console=screen,
    )
    shown = screen.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]
    assert "\x1b[1A" in shown
    assert "step 1 of" in shown


def test_wrong_watches_are_refused(plato):
    refused(plato("watch", "best", *SETUP), "'best'")
    refused(plato("watch", "noop", *SETUP, "--speed", 0), "speed")
