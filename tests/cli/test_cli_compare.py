"""`plato compare` as a person meets it."""

import csv
import io
import json
from dataclasses import replace

import pytest

from command_line import refused
from plato.domains.setups import load_setup, write_setup
from small_runs import trained

RULES = ("--policy", "weakest", "--policy", "noop")
HERE = ("--setup", "wildfire-2x3-S3")


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """One training on 2×3 S2, with two checkpoints."""
    folder = tmp_path_factory.mktemp("runs") / "other"
    return trained(folder, setups=("wildfire-2x3-S2",), seeds=1, checkpoints=2)


def test_rules_by_the_papers_protocol(plato):
    result = plato("compare", *RULES, *HERE, "--protocol", "paper")
    assert result.returncode == 0, result.stderr
    assert "wildfire-2x3-S3, paper protocol" in result.stdout
    assert "64.00 ± 0.00*" in result.stdout
    assert "paper noise, actions as each method" in result.stdout


def test_runs_by_the_fields_protocol_with_plots(plato, additive, tmp_path):
    result = plato(
        *(
            "compare",
            f"PLATO={additive}",
            *RULES,
            "--actions",
            "greedy",
            "--plots",
            "plots",
        ),
        *("--optimum", "known", "--episodes", 10),
    )
    assert result.returncode == 0, result.stderr
    for words in ("PLATO (2)", "IQM", "probability of improvement", "actions greedy"):
        assert words in result.stdout
    assert "4 plots, as PNG and PDF: plots" in result.stderr
    drawn = sorted(path.name for path in (tmp_path / "plots").iterdir())
    assert len(drawn) == 8
    assert "performance-profile.pdf" in drawn


def test_every_format(plato, additive, tmp_path):
    wanted = (*RULES, *HERE, "--episodes", 5, "--metric", "return")
    for form in ("console", "markdown", "latex", "json"):
        result = plato("compare", *wanted, "--format", form, "--out", f"deep/{form}")
        assert result.returncode == 0, result.stderr
        assert result.stdout == ""
    folder = tmp_path / "deep"
    assert "field protocol" in (folder / "console").read_text()
    assert "| noop | -6.00 [-6.00, -6.00]" in (folder / "markdown").read_text()
    assert r"\begin{tabular}" in (folder / "latex").read_text()
    assert json.loads((folder / "json").read_text())["protocol"]["name"] == "field"
    shown = plato("compare", *wanted, "--format", "csv")
    assert len(list(csv.DictReader(io.StringIO(shown.stdout)))) == 2
    shown = plato("compare", additive, *wanted, "--format", "marl-eval")
    algorithms = json.loads(shown.stdout)["wildfire"]["wildfire-2x3-s3"]
    assert list(algorithms) == ["additive", "weakest", "noop"]


def test_zero_shot_beside_the_paper(plato, additive):
    result = plato(
        *("compare", additive, "--zero-shot", "--protocol", "paper", "--episodes", 3),
        *("--beside-paper", "main", "--metric", "return"),
    )
    assert result.returncode == 0, result.stderr
    assert "trained on 2×3, tested (zero-shot) on 4×4" in result.stdout
    assert "48.69 ± 18.48*" in result.stdout  # DICG's, bold in the paper


def test_what_cannot_be_compared_is_refused(plato, additive, other, tmp_path):
    refused(plato("compare"), "at least one run or one --policy")
    refused(plato("compare", *RULES), "--setup")
    refused(plato("compare", additive, other), "no setup in common", "--setup")
    refused(plato("compare", other), "one training", "--protocol paper")
    refused(plato("compare", other, "--protocol", "paper"), "kept 1 checkpoint(s)")
    refused(plato("compare", "nothing"), "is not the folder of a run")
    refused(plato("compare", *RULES, *HERE, "--metric", "score"), "'score'", "putouts")
    refused(plato("compare", "--policy", "best", *HERE), "'best'", "weakest")
    refused(plato("compare", *RULES, "--setup", "x"), "'x'", "plato setups")
    edited = replace(load_setup("wildfire-2x3-S3").config, max_steps=9)
    write_setup(tmp_path / "wildfire-2x3-S3.toml", edited)
    twice = (*HERE, "--setup", "wildfire-2x3-S3.toml")
    refused(plato("compare", *RULES, *twice), "Two different setups are called")
    refused(plato("compare", additive, *HERE, "--zero-shot"), "not both")
    refused(plato("compare", *RULES, *HERE, "--seed", 10**6), "never reported")
    refused(plato("compare", *RULES, *HERE, "--episodes", 0), "episodes")
    refused(plato("compare", *RULES, *HERE, "--optimum", "80"), "SETUP=NUMBER")
    unknown = ("--setup", "wildfire-4x4-S3-uneven", "--optimum", "known")
    refused(plato("compare", *RULES, *unknown), "4x4-S3-uneven is not known")
    refused(
        plato("compare", *RULES, *HERE, "--format", "marl-eval", "--episodes", 2),
        "at least one run",
    )
    (tmp_path / "file").write_text("kept")
    refused(plato("compare", *RULES, *HERE, "--out", "file/table"), "cannot be written")
