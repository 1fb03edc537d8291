"""Reports of a store: all rows that are complete, right numbers, in three formats."""

import gzip
import json
import re
import subprocess
from dataclasses import replace
from shutil import which

import numpy as np
import pytest
import tyro
from scipy import stats
from small_cells import AWAY, FIELD, HOME, PAPER, SETTINGS, given, trained

from markup import Tags
from plato.cli.reproducing import Reproduce
from plato.errors import PlatoError
from plato.evaluation import aggregates
from plato.evaluation.rendering import HELD
from plato.experiments import suite
from plato.experiments.cells import Row
from plato.experiments.glance import glance
from plato.experiments.recorded import Done, done
from plato.experiments.report import write_report
from plato.experiments.sections import sections
from plato.experiments.store import Entry, Store

METRICS = ("return", "reward_per_fight", "noop_percent", "burnouts", "putouts")
DOT = Row("mlp+dot", SETTINGS)
GENERAL = Row("PLATO generalist", SETTINGS)
SHIPPED = Row(suite.SHIPPED, policy=suite.SHIPPED_AS)


def entry(cell, level: float) -> Entry:
    """Made-up episodes around a level, of a cell's own shape."""
    policies = cell.protocol.chosen if cell.trained_on else 1
    rng = np.random.default_rng(cell.seed)
    rows = level + rng.normal(size=(policies, len(cell.protocol.seeds)))
    metrics = (*METRICS, "zero_suppressant", "new_fires")
    data = {
        "format": 1,
        "fingerprint": cell.fingerprint,
        "cell": cell.to_mapping(),
        "code": {"plato": "0.1", "digest": "abc"},
        "environment": {"device": "abacus", "jax": "1"},
        "seconds": {"training": 2.0, "playing": 1.0},
        "episodes": {s: {m: rows.tolist() for m in metrics} for s in cell.plays},
    }
    if cell.trained_on:
        curve = {"steps": [40, 80], "return": [1.0, level]}
        data |= {"chosen": [6] * policies, "steps": 240, "curve": curve}
    return Entry(cell.fingerprint, data)


@pytest.fixture(autouse=True)
def _few_resamples(monkeypatch):
    """How wide intervals are is seen to in tests/evaluation/test_aggregates.py."""
    monkeypatch.setattr(aggregates, "RESAMPLES", 100)


@pytest.fixture
def found(tmp_path) -> list[Done]:
    levels = {}
    for by in (FIELD, PAPER):
        levels |= {trained(seed, by=by): 50.0 for seed in (42, 43)}
        levels |= {trained(seed, DOT, by=by): 30.0 for seed in (42, 43)}
        levels[given(by=by)] = 10.0
    both = (HOME, "wildfire-2x3-S1")
    for seed in (42, 43):
        one = replace(trained(seed, GENERAL), trained_on=both, plays=(*both, AWAY))
        levels[one] = 49.0
    for setup in (*both, AWAY):
        levels[replace(given(), row=SHIPPED, plays=(setup,))] = 60.0
    # A row that lacks the second training that intervals need.
    levels[trained(42, Row("DICG", SETTINGS), by=FIELD)] = 20.0
    store = Store(tmp_path / "store")
    for cell, level in levels.items():
        store.add(cell, entry(cell, level))
    return done(store, [*levels, trained(99)])


def test_sections_show_what_the_store_holds(found):
    made = {section.title: section for section in sections(found, FIELD)}
    assert list(made) == [
        "Native setups",
        "Distance to the optimum",
        "Against the given policies",
        "Zero-shot: from 2×3 to 3×3",
        "Ablation",
        "Ablation tested",
        "Ablation, zero-shot: from 2×3 to 3×3",
        "One policy for all: native setups",
        "One policy for all: 3×3 unseen, specialists of 2×3",
    ]
    # Small trainings, and what the one that ships took.
    for_all = made["One policy for all: native setups"].text
    million = suite.SHIPPED_STEPS / 1e6
    small = "PLATO generalist 0.00024, PLATO 0.00024."
    assert for_all.endswith(f"Shipped generalist {million:.0f}, {small}"), for_all
    native = made["Native setups"]
    assert "DICG" in native.missing  # one training, where intervals need two
    assert "MOHITO" in native.missing  # none at all
    assert "Random" not in native.missing
    labels = [row.label for part in native.report.tables[0].sections for row in part]
    assert labels[:2] == ["PLATO (2)", "Random"]
    assert "PLATO (paper)" in labels
    assert "holds the mean of many in about 50 of 100 with 2 (" in native.report.note
    comparison = native.comparison
    assert comparison is not None
    cell = comparison.cells["PLATO", HOME, "return"]
    own = [o for o in found if o.cell.row.name == "PLATO" and o.cell.protocol == FIELD]
    means = [np.mean(o.entry.data["episodes"][HOME]["return"]) for o in own]
    assert cell.mean == pytest.approx(np.mean(means))
    assert cell.bold
    (share,) = made["Distance to the optimum"].report.tables[0].sections[0][0].entries
    assert share.text == f"{100 * np.mean(means) / 84.1319:.1f} %"
    (row,) = made["Against the given policies"].report.tables[0].sections[0]
    assert row.label == "PLATO over Random"
    (random,) = [o for o in found if o.cell == given()]
    gains = np.asarray([o.entry.data["episodes"][HOME]["return"][0] for o in own])
    gains = gains - random.entry.data["episodes"][HOME]["return"][0]
    # Two standard errors, of trainings and of seeds, added and weighed as Welch does.
    squares = [stats.sem(gains.mean(axis=axis)) ** 2 for axis in (1, 0)]
    weighed = squares[0] ** 2 / (len(own) - 1) + squares[1] ** 2 / (gains.shape[1] - 1)
    t = stats.t(sum(squares) ** 2 / weighed)
    expected = 2 * t.cdf(-abs(gains.mean()) / sum(squares) ** 0.5)
    assert row.entries[0].text == f"{expected:.0e}"
    assert row.entries[0].bold
    ablation = made["Ablation"].report.tables[0].sections[0]
    assert [row.label for row in ablation] == ["mlp+add (2)", "mlp+dot (2)"]
    (row,) = made["Ablation tested"].report.tables[0].sections[0]
    assert row.label == "mlp+add over mlp+dot"
    # Made by the same draws around 50 and 30, so only the trainings' means err.
    error = (2 * stats.sem(means) ** 2) ** 0.5
    p = 2 * stats.t.sf(20 / error, 2)
    assert row.entries[0].text == f"+20.00, {p:.0e}"
    assert row.entries[0].bold


def test_one_row_alone_is_not_what_a_switch_buys(found):
    for seed in (42, 43):
        cell = trained(seed, Row("away removed", SETTINGS))
        found.append(Done(cell, entry(cell, 40.0)))
    titles = {protocol: _titles(found, protocol) for protocol in (FIELD, PAPER)}
    assert "What each switch buys" in titles[FIELD]
    assert "What each switch buys" not in titles[PAPER]
    # Beside the paper's rows, one of ours is enough.
    one = [o for o in found if o.cell.row.name == "PLATO" or not o.cell.trained_on]
    assert "Ablation" in _titles(one, PAPER)
    assert "Native setups" in _titles(one, PAPER)


def _titles(found, protocol) -> list[str]:
    return [section.title for section in sections(found, protocol)]


def test_rows_say_how_few_trainings_a_setup_may_have(found):
    other = "wildfire-2x3-S1"
    for seed in (42, 43, 44):
        cell = replace(trained(seed), trained_on=(other,), plays=(other,))
        found.append(Done(cell, entry(cell, 80.0)))
    cell = replace(given(), plays=(other,))
    found.append(Done(cell, entry(cell, 85.0)))
    native, *_ = sections(found, FIELD)
    rows = [row for part in native.report.tables[0].sections for row in part]
    assert rows[0].label == "PLATO (2–3)"
    assert "about 50 of 100 with 2, 75 of 100 with 3 (" in native.report.note


def test_the_papers_pattern_is_put_beside_ours(found):
    made = {section.title: section for section in sections(found, PAPER)}
    pattern = made["Who is significantly best"].report
    here, paper = pattern.tables[0].sections[0]
    assert here.entries[0].text == "PLATO"
    assert paper.entries[0].text == "PLATO"
    assert "columns agree" in pattern.note
    assert "Distance to the optimum" not in made


def test_openness_events_are_pooled_over_the_papers_models(found):
    made = {section.title: section for section in sections(found, PAPER)}
    events = made["Openness events"].report
    assert [table.title for table in events.tables] == ["ran dry", "new fires"]
    own = [
        np.ravel(
            [o.entry.data["episodes"][HOME]["new_fires"] for o in found if fits(o)]
        )
        for fits in (
            lambda o: o.cell.row.name == "PLATO" and o.cell.protocol == PAPER,
            lambda o: o.cell == given(by=PAPER),
        )
    ]
    # PLATO has six times as many episodes, and counts as much as Random.
    assert len(own[0]) == 6 * len(own[1])
    both = np.concatenate([own[0], np.repeat(own[1], 6)])
    here, paper = (row.entries[0].text for row in events.tables[1].sections[0])
    assert here == f"{both.mean():.2f} ± {both.std():.2f}"
    assert paper == "19.53 ± 15.81"
    assert "PLATO, Random together, without DICG, DGN, MOHITO, NOOP" in events.note


def test_a_glance_counts_what_tables_show(found):
    other = "wildfire-2x3-S1"
    for seed in (42, 43):
        cell = replace(trained(seed), trained_on=(other,), plays=(other,))
        found.append(Done(cell, entry(cell, 80.0)))
    cell = replace(given(), plays=(other,))
    found.append(Done(cell, entry(cell, 85.0)))
    both = {by.name: sections(found, by) for by in (FIELD, PAPER)}
    shares, over, shipped, general, printed, agree = glance(both)
    means = {
        setup: np.mean(
            [
                np.mean(o.entry.data["episodes"][setup]["return"])
                for o in found
                if o.cell.row.name == "PLATO"
                and o.cell.protocol == FIELD
                and setup in o.cell.trained_on
            ]
        )
        for setup in (HOME, other)
    }
    share = (means[HOME] / 84.1319 + means[other] / 85.9776) / 2
    expected = f"on the 2 setups with S1–S3: PLATO {100 * share:.1f} %; Random "
    assert expected in shares
    # Random, at 10 and at 85, is beaten on one of the two.
    assert over.endswith("on the 2 setups with S1–S3: PLATO on 1.")
    # Its 49 are close to the specialists' 50, but not to the 80 of the others.
    assert "on 1 of 2 native setups, and ahead of them on 0 of 1" in general
    assert "on 1 of 2 native setups, and ahead of them on 1 of 1" in shipped
    # The paper's PLATO has 76.07 there, and the made-up one 50.
    assert printed.endswith("PLATO on 0 of 1 native setups.")
    assert "1 native setups: the same as in the paper in " in agree
    assert agree.endswith(" of 5 columns.")


def test_a_report_in_every_format(found, tmp_path):
    for form in ("html", "markdown", "latex"):
        write_report(found, tmp_path / form, form)
    page = (tmp_path / "html").read_text()
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    words = " ".join(tags.text)
    for text in ("By the field's protocol", "abacus", "PLATO 0.1 (abc)"):
        assert text in words
    assert (
        "Not done everywhere yet, and so not shown: DICG; DGN; "
        "MOHITO; NOOP; Weakest; Strongest." in words
    )
    assert "(<code>plato solve</code>)" in page
    assert page.count("<img") == 3  # shares of the optimum, and curves by protocol
    markdown = (tmp_path / "markdown").read_text()
    assert "| PLATO (2) |" in markdown
    differs = markdown.partition("## What differs from the paper, and why")[2]
    for name in ("Trainings", "Suppressant", "Transfer maps"):
        assert f"- **{name}.** " in differs
    latex = (tmp_path / "latex").read_text()
    assert latex.count(r"\begin{document}") == 1
    assert latex.count(r"\begin{table*}") == latex.count(r"\end{table*}") > 10
    for line in (
        r"\section{By the field's protocol}",
        r"\subsection{Zero-shot: from 2$\times$3 to 3$\times$3}",
    ):
        assert line in latex
    assert r"(\texttt{plato solve})" in latex
    waiting = [part.count(r"\end{table*}") for part in latex.split("\n\\platopage\n")]
    assert max(waiting) <= HELD


def test_a_report_says_what_it_lacks(found, tmp_path, monkeypatch):
    # One training by the field's protocol, and a given policy by the paper's.
    few = [o for o in found if o.cell in (trained(42), given(by=PAPER))]
    assert len(few) == 2
    write_report(few, tmp_path / "few.md", "markdown")
    text = (tmp_path / "few.md").read_text()
    assert text.index("Trainings were cut short, some to") < text.index("At a glance")
    assert "no row has two of them on the same setup" in text
    assert "no row has been trained" in text
    monkeypatch.setattr("plato.experiments.pictures.find_spec", lambda name: None)
    write_report(few, tmp_path / "few.html", "html")
    page = (tmp_path / "few.html").read_text()
    assert "Pictures need Matplotlib: <code>pip install" in page
    cell = trained(42, suite.PLATO)
    write_report([Done(cell, entry(cell, 50.0))], tmp_path / "whole.md", "markdown")
    assert "cut short" not in (tmp_path / "whole.md").read_text()


@pytest.mark.skipif(which("pdflatex") is None, reason="needs pdflatex")
def test_latex_compiles_as_it_is(found, tmp_path):
    write_report(found, tmp_path / "report.tex", "latex")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "report.tex"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120)
    assert made.returncode == 0, made.stdout.decode("utf-8", "replace")[-2000:]
    assert (tmp_path / "report.pdf").exists()


def test_commands_on_a_store(plato, found, tmp_path, monkeypatch):
    result = plato("report", "--store", "nowhere")
    assert result.returncode == 2
    assert "holds no results; make some with `plato reproduce`" in result.stderr
    result = plato("report", "--store", str(tmp_path / "store"))
    assert result.returncode == 2
    assert "none of its" in result.stderr
    result = plato("report", "--store", "s", "--part-of-training", "7")
    assert result.returncode == 2
    assert "must be above 0 and at most 1" in result.stderr
    flags = ["--methods", "PLATO", "DICG", "--methods", "QMIX"]
    result = plato("reproduce", "--store", "s", *flags)
    assert result.returncode == 2
    assert "There is no row 'QMIX'" in result.stderr


def test_what_is_not_whole_is_no_traceback(plato, tmp_path):
    """Nor a count below none: what seekers refuse is not counted, either."""
    store = Store(tmp_path / "store")
    cells = suite.cells(
        ("given",),
        suite.protocols(["paper"]),
        methods=["NOOP", "Random", "Weakest"],
        setups=["wildfire-2x3-S0"],
    )
    for cell, wrong in zip(cells, ("cell", "seconds", ""), strict=True):
        made = entry(cell, 1.0)
        if wrong == "cell":
            del made.data["cell"]["protocol"]
        elif wrong:
            del made.data[wrong]
        store.add(cell, made)
    stray = replace(cells[0], plays=("wildfire-2x3-S1", "wildfire-2x3-S2"))
    store.add(stray, entry(stray, 1.0))
    result = plato("report", "--store", "store", "--format", "markdown")
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("A result could not be read; it is in") == 2
    assert "1 results in the store are of other settings" in result.stdout
    assert "1 of " in result.stdout


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"methods": (("QMIX",),)}, "from: 'PLATO', 'DICG'"),
        ({"address": "auto"}, "add --engine ray"),
        ({"gpus": 0.5}, "--gpus is for the cells of a cluster; add --engine ray"),
        ({"gpus": -1.0, "engine": "ray"}, "--gpus must be 0 or more, not -1"),
        ({"seeds": 0}, "seeds must be from 1"),
        ({"part_of_training": 2.0}, "must be above 0 and at most 1"),
        ({"part_of_training": float("nan")}, "must be above 0 and at most 1"),
        (
            {"only": "zero-shot", "methods": (("Weakest",),)},
            "--only zero-shot has no cell of the rows 'Weakest' by --protocol both; "
            "choose --only tables or native or all.",
        ),
        (
            {"methods": ((suite.SHIPPED,),)},
            "--only tables has no cell of the rows 'Shipped generalist' by --protocol "
            "both; choose --only generalist or all.",
        ),
        (
            {"only": "generalist", "protocol": "paper"},
            "--only generalist has no cell by --protocol paper: generalists are there "
            "by the field's; choose --protocol field.",
        ),
        (
            {"only": "zero-shot", "setup": ("wildfire-4x4-S1",)},
            "--only zero-shot has no transfer of wildfire-4x4-S1; choose setups of "
            "2x3 or 3x3",
        ),
        (
            {"only": "zero-shot", "setup": ("wildfire-9x9-S1",)},
            "wildfire-9x9-S1 is not one of the paper's native setups",
        ),
    ],
)
def test_what_reproduce_refuses(asked, words):
    with pytest.raises(PlatoError, match=re.escape(words)):
        Reproduce(**asked).cells()


@pytest.mark.parametrize(
    "flags",
    [["--methods", "PLATO", "DICG"], ["--methods", "PLATO", "--methods", "DICG"]],
)
def test_methods_may_be_repeated(flags):
    asked = tyro.cli(Reproduce, args=flags)
    assert {cell.row.name for cell in asked.cells()} == {"PLATO", "DICG"}


def test_zero_shot_trains_only_what_is_carried_over():
    cells = Reproduce(only="zero-shot").cells()
    assert {len(cell.plays) for cell in cells} == {3}
    grids = {name.split("-")[1] for cell in cells for name in cell.trained_on}
    assert grids == {"2x3", "3x3"}
    assert set(cells) < set(Reproduce(only="native").cells())


def test_reproducing_and_reporting(plato, tmp_path):
    """Given policies take no training: the whole way in seconds."""
    flags = ["--methods", "NOOP", "--methods", "Random", "--seeds", "2"]
    flags += ["--setup", "wildfire-2x3-S0", "--part-of-training", "0.5"]
    command = ["reproduce", "--only", "native", "--store", "mine", *flags]
    result = plato(*command)
    assert result.returncode == 0, result.stderr
    assert "4 cell(s), 0 of them done already" in result.stdout
    hint = "plato report --store mine --seeds 2 --part-of-training 0.5"
    assert f"All 4 cell(s) are done: {hint}\n" in result.stdout
    files = sorted((tmp_path / "mine" / "cells").rglob("*.json.gz"))
    before = [path.read_bytes() for path in files]
    data = json.loads(gzip.decompress(before[0]))
    assert data["cell"]["policy"] == "noop"
    files[1].write_bytes(before[1][:30])
    result = plato(*command)
    assert result.returncode == 0
    assert "could not be read; it is in" in result.stdout
    assert "3 of them done already" in result.stdout
    data["setups"]["wildfire-2x3-S0"] = "what it was then"
    files[0].write_bytes(gzip.compress(json.dumps(data).encode()))
    other = json.loads(gzip.decompress(before[2]))
    other["code"]["digest"] = "what it was then"
    files[2].write_bytes(gzip.compress(json.dumps(other).encode()))
    assert "state(s) of PLATO's code" not in result.stdout
    result = plato(*command)
    assert result.stdout.count("3 of them done already") == 1
    assert "1 of these were made by 1 other state(s) of PLATO's code" in result.stdout
    assert "wildfire-2x3-S0 is another setup than the one that 1 res" in result.stdout
    assert len(list((tmp_path / "mine" / "outdated").rglob("*.json.gz"))) == 1
