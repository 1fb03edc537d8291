"""`plato bounds` as a person meets it."""

import json
import subprocess
import sys

import pytest

from plato.domains.setups import load_setup, setup_toml


@pytest.fixture
def bounds(tmp_path):
    """Runs `plato bounds …` in an empty folder."""
    program = "from plato.cli.main import main; main()"

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", program, "bounds", *map(str, arguments)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def refused(result: subprocess.CompletedProcess[str], *words: str) -> None:
    assert result.returncode == 2, result
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("plato: ")
    for word in words:
        assert word in line


def test_a_table_with_a_row_for_each_setup_and_a_line_for_each_formula(bounds):
    result = bounds("wildfire-2x3-S1", "wildfire-3x3-S0")
    assert result.returncode == 0, result.stderr
    rows = [line.split() for line in result.stdout.splitlines()]
    first = ["-200.00", "-4.00", "400.00", "200.00†", "202.00", "124.00"]
    assert ["wildfire-2x3-S1", *first] in rows
    second = ["-400.00", "-8.00", "600.00", "400.00", "8.00", "8.00"]
    assert ["wildfire-3x3-S0", *second] in rows
    for start in (
        "lower, paper",
        "lower, sound",
        "upper, paper IP",
        "upper, sound",
        "†",
    ):
        assert any(line.startswith(start) for line in result.stdout.splitlines())


def test_json_says_where_each_number_comes_from(bounds, tmp_path):
    (tmp_path / "mine.toml").write_text(
        setup_toml(load_setup("wildfire-2x3-S1").config)
    )
    result = bounds("mine.toml", "wildfire-2x3-S0", "--out", "deep/down/bounds.json")
    assert result.returncode == 0, result.stderr
    data = json.loads((tmp_path / "deep/down/bounds.json").read_text())
    assert [row["setup"] for row in data["bounds"]] == ["mine", "wildfire-2x3-S0"]
    simple = data["bounds"][0]["upper_simple"]
    assert (simple["value"], simple["origin"], simple["proved"]) == (
        200,
        "paper",
        False,
    )
    assert "h / int₀" in simple["formula"]
    assert data["bounds"][0]["upper_sound"]["finished"] is True


def test_no_time_still_gives_an_answer(bounds):
    result = bounds("wildfire-4x4-S3", "--time-limit", 1e-9)
    assert result.returncode == 0, result.stderr
    assert "≤ " in result.stdout
    assert "not solved in time" in result.stdout


def test_mistakes_are_refused_in_a_sentence(bounds, tmp_path):
    refused(bounds(), "at least one setup")
    refused(bounds("x"), "'x'", "plato setups")
    refused(bounds("none.toml"), "none.toml")
    refused(bounds("wildfire-2x3-S0", "--time-limit", 0), "time limit", "0")
    (tmp_path / "file").write_text("kept")
    refused(bounds("wildfire-2x3-S0", "--out", "file/b.json"), "cannot be written")


def test_it_does_without_jax(tmp_path):
    code = "import plato.domains.wildfire.bounds, sys; print('jax' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
