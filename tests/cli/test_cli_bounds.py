"""`plato bounds` as a person meets it."""

import json
import subprocess
import sys

from command_line import refused
from plato.domains.setups import load_setup, setup_toml


def test_a_table_with_a_row_for_each_setup_and_a_line_for_each_formula(plato):
    result = plato("bounds", "wildfire-2x3-S1", "wildfire-3x3-S0")
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


def test_json_says_where_each_number_comes_from(plato, tmp_path):
    (tmp_path / "mine.toml").write_text(
        setup_toml(load_setup("wildfire-2x3-S1").config)
    )
    result = plato(
        "bounds", "mine.toml", "wildfire-2x3-S0", "--out", "deep/down/bounds.json"
    )
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


def test_no_time_still_gives_an_answer(plato):
    result = plato("bounds", "wildfire-4x4-S3", "--time-limit", 1e-9)
    assert result.returncode == 0, result.stderr
    assert "≤ " in result.stdout
    assert "not solved in time" in result.stdout


def test_mistakes_are_refused_in_a_sentence(plato, tmp_path):
    refused(plato("bounds"), "at least one setup")
    refused(plato("bounds", "x"), "'x'", "plato setups")
    refused(plato("bounds", "none.toml"), "none.toml")
    refused(plato("bounds", "wildfire-2x3-S0", "--time-limit", 0), "time limit", "0")
    (tmp_path / "file").write_text("kept")
    refused(
        plato("bounds", "wildfire-2x3-S0", "--out", "file/b.json"), "cannot be written"
    )


def test_it_does_without_jax(tmp_path):
    code = "import plato.domains.wildfire.bounds, sys; print('jax' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_the_exact_optimum_lies_between(plato, tmp_path):
    names = ("wildfire-2x3-S3", "wildfire-3x3-S1", "wildfire-3x3-S3")
    result = plato("bounds", *names, "--solve", "--out", "bounds.json")
    assert result.returncode == 0, result.stderr
    assert "84.13" in result.stdout
    for row in json.loads((tmp_path / "bounds.json").read_text())["bounds"]:
        below, above = row["lower_sound"]["value"], row["upper_sound_mean"]["value"]
        assert below <= row["optimum"] <= above <= row["upper_sound"]["value"]
