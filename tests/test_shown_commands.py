"""Everything that the README and the tutorial show is run, and compared.

The guides are in `test_shown_guides.py`.
"""

import contextlib
import io
import re
import shutil
import subprocess

import pytest

import shown
from shown_pages import ELSEWHERE, ROOT, SHORT, SMALL, Ran, run_pages, steps_of

PAGES = ("README.md", "docs/tutorial.md")
EVERY_PAGE = sorted(
    path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")
)


@pytest.fixture(scope="module")
def ran(tmp_path_factory) -> dict[str, Ran]:
    return run_pages(PAGES, tmp_path_factory.mktemp)


@pytest.mark.parametrize(
    "place", [step.place for page in PAGES for step in steps_of(page)]
)
def test_what_is_shown_runs_and_prints_what_is_shown(ran, place):
    ran[place].check()


def test_the_tables_hold_nothing_that_is_not_shown():
    pages = ("README.md", *EVERY_PAGE)
    commands = {step.text for page in pages for step in steps_of(page)}
    assert set(SHORT) | set(ELSEWHERE) <= commands
    assert not set(SHORT) & set(ELSEWHERE)


def test_the_tutorials_team_has_learned(ran):
    """Numbers vary from machine to machine; that it beats the rule does not."""
    (printed,) = [r.out for r in ran.values() if "--out runs/first" in r.step.text]
    rows = dict(re.findall(r"plato (seed \d+) +(-?[\d.]+)", printed))
    assert len(rows) == 2
    assert min(map(float, rows.values())) > 58  # Weakest has 52.84, the optimum 73.78


def test_the_picture_of_the_readme_is_what_its_command_makes(ran):
    from PIL import Image

    (folder,) = {r.folder for r in ran.values() if r.step.page == "README.md"}
    with (
        Image.open(folder / "replay.gif") as made,
        Image.open(ROOT / "docs" / "replay.gif") as kept,
    ):
        assert made.size == kept.size
        assert made.n_frames == kept.n_frames  # pyright: ignore[reportAttributeAccessIssue]
    assert (ROOT / "docs" / "replay.gif").stat().st_size < 1_000_000


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_the_demo_is_what_the_makefile_says(tmp_path):
    """The commands of `make demo`, with a training of two small updates."""
    made = subprocess.run(
        ["make", "--dry-run", "demo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    whole = made.replace("\\\n", " ")
    commands = [
        "plato " + " ".join(found.split())
        for found in re.findall(r"\S*bin/plato ([^&\n]*)", whole)
    ]
    assert [command.split()[1] for command in commands] == ["train", "evaluate"]
    assert "--updates 150" in commands[0]
    commands[0] = commands[0].replace("--updates 150", SMALL)
    with contextlib.chdir(tmp_path):
        for command in commands:
            step = shown.Step("Makefile", 0, "command", command)
            done = shown.run(step, command, {})
            assert done["code"] == 0, done["err"]


@pytest.mark.parametrize("page", EVERY_PAGE)
def test_commands_of_all_pages_are_understood(page):
    """Their flags exist, and take what they are given; nothing is run."""
    for step in steps_of(page):
        if step.kind == "command" and step.text.startswith("plato "):
            understood(step)


def understood(step: shown.Step) -> None:
    from plato.cli.main import parsed

    words = step.text.replace("…", "").split()[1:]
    out = io.StringIO()
    code = None
    with contextlib.redirect_stderr(out), contextlib.redirect_stdout(out):
        try:
            parsed(words)
        except SystemExit as end:
            code = end.code
    assert not code, f"{step.place}: {step.text}\n{out.getvalue()}"


class TestReadingPages:
    """The reader itself, so that it cannot let things slip through."""

    PAGE = "\n".join(
        [
            *("```console", "$ plato one \\", "    --two", "12 s, 3.5", "…", "end"),
            *("$ plato three", "```", "", "<!-- numbers vary -->", "```console"),
            *("$ plato four", " ─── 7", "```", "", "```", "plato five  # remark"),
            *("", "make six", "```", "```python", "x = 1", "```"),
            *("<!-- file: a.toml -->", "", "```toml", "a = 1", "```"),
        ]
    )

    @pytest.fixture
    def steps(self, tmp_path):
        (tmp_path / "page.md").write_text(self.PAGE, encoding="utf-8")
        return shown.steps(tmp_path / "page.md")

    def test_blocks_become_steps(self, steps):
        assert [(step.kind, step.text.strip()) for step in steps] == [
            ("command", "plato one --two"),
            ("command", "plato three"),
            ("command", "plato four"),
            ("command", "plato five"),
            ("command", "make six"),
            ("python", "x = 1"),
            ("file", "a = 1"),
        ]
        assert steps[0].output == "12 s, 3.5\n…\nend"
        assert steps[3].output is None
        assert steps[6].marks == ("a.toml",)

    def test_output_is_compared(self, steps):
        whole, quiet, varying = steps[:3]
        assert not shown.differences(whole, "12 s, 3.5\nsomething\nelse\nend\n")
        assert shown.differences(whole, "12 s, 3.6\nend\n")
        assert shown.differences(whole, "before\n12 s, 3.5\nend\n")
        assert shown.differences(whole, "12 s, 3.5\nend\nmore\n")
        assert shown.differences(whole, "12 s, 3.5\n")
        assert shown.differences(quiet, "something\n")
        assert not shown.differences(varying, "  ──────  -1,234.5\n")
        assert shown.differences(varying, "seven")

    def test_seconds_may_vary_alone(self):
        step = shown.Step("p", 1, "command", "c", "9 of 9 in 3.1 s", ("seconds vary",))
        assert not shown.differences(step, "9 of 9 in 12 s")
        assert shown.differences(step, "8 of 9 in 3.1 s")

    def test_what_is_no_command_of_plato_is_not_run(self):
        done = shown.run(shown.Step("p", 1, "command", "rm -r x"), None, {})
        assert done["code"] == 1
