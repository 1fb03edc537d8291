"""The page a run ends with: what it says, alone and in a browser."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from markup import Tags
from plato.cli.training import evaluate_runs
from plato.evaluation.evaluate import Evaluation
from plato.files import write_text
from plato.runs.curves import MOST_POINTS, curve, legend
from plato.runs.folder import RunFolder
from plato.runs.lines import MOST_PANELS, Line, learning_curves
from plato.runs.picture import drawing, write_picture
from plato.runs.summary import write_summary
from plato.runs.summary_page import summary_page
from small_runs import SMALL, trained

SETUPS = tuple(f"wildfire-{g}-S{s}" for g in ("2x3", "3x3", "4x4") for s in range(4))
FLEET = replace(SMALL, setups=("wildfire-2x3-S0", "wildfire-2x3-S3"), fleet=True)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunFolder:
    """A finished run of four trainings: two setups, two seeds."""
    path = tmp_path_factory.mktemp("runs") / "<mine>"
    folder = RunFolder(trained(path, setups=FLEET.setups, fleet=True))
    # So short a training ends no episode; its curve is made up.
    make_up(folder)
    write_summary(folder, evaluate_runs(folder))
    return folder


def make_up(folder: RunFolder) -> None:
    """Metrics for a run that has none."""
    for number, name in enumerate(folder.config().runs):
        rows = [
            {"update": i, "episodes": 3, "return": 10.0 * number + i}
            for i in range(1, 7)
        ]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        write_text(folder.metrics_path(name), lines)


def many(path: Path, fleet: bool) -> RunFolder:
    """Of three seeds on all twelve setups, begun but not trained."""
    learning = replace(SMALL.learning, games=len(SETUPS))
    config = replace(SMALL, setups=SETUPS, fleet=fleet, seeds=3, learning=learning)
    folder = RunFolder.create(path, config)
    make_up(folder)
    return folder


@pytest.fixture(scope="module")
def results(run) -> list[Evaluation]:
    return evaluate_runs(run)


@pytest.fixture(scope="module")
def page(run) -> str:
    return (run.path / "summary.html").read_text(encoding="utf-8")


def test_it_says_what_the_run_was_and_what_came_of_it(run, page):
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    words = " ".join(" ".join(tags.text).split())
    assert "wildfire-2x3-S0, wildfire-2x3-S3" in words
    assert "4 trainings of 6 updates × 4 games × 10 steps" in words
    summary = (run.path / "SUMMARY.md").read_text(encoding="utf-8")
    assert "![Learning curves](curve.png)" in summary
    assert (run.path / "curve.png").stat().st_size > 10_000
    rows = [line.split(" | ") for line in summary.splitlines() if "plato seed" in line]
    assert len(rows) == 4
    for row in rows:  # the same numbers as in SUMMARY.md
        for cell in row[1:]:
            assert cell.strip(" |") in words
    name = "<mine>/checkpoints/wildfire-2x3-S0-seed42"
    assert f"plato evaluate --setup wildfire-2x3-S0 --policy {name}" in words
    assert "plato compare <mine> --policy weakest" in words
    assert "The 3 other trainings are in" in words


def test_curves_are_of_the_metrics(page):
    assert page.count("<svg") == 2  # one for each setup
    assert page.count("<polyline") == 4
    assert page.count("<title>seed 43</title>") == 2


def test_what_differs_from_the_defaults_is_marked(page):
    assert '<dt class="changed">hidden</dt><dd class="changed">8</dd>' in page
    assert '<dt class="changed">fleet</dt><dd class="changed">true</dd>' in page
    assert "<dt>gamma</dt><dd>0.98</dd>" in page


def test_the_same_run_has_the_same_page(run, page, tmp_path):
    """Wherever it lies, and whoever asks from where."""
    moved = tmp_path / run.path.name
    moved.symlink_to(run.path)
    assert summary_page(RunFolder(moved), evaluate_runs(run)) == page


def test_without_matplotlib_there_are_curves_too(run, page, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    (run.path / "curve.png").unlink()
    write_summary(run, evaluate_runs(run))
    assert not (run.path / "curve.png").exists()
    assert (run.path / "summary.html").read_text(encoding="utf-8") == page


class TestPicture:
    @pytest.mark.parametrize("fleet", [False, True], ids=["together", "fleet"])
    def test_many_setups_fit(self, tmp_path, fleet):
        """Matplotlib warns of panels that names leave no room for: an error here."""
        folder = many(tmp_path / "many", fleet)
        curves = learning_curves(folder)
        assert write_picture(curves, tmp_path / "curve.png")
        figure = drawing(curves)
        titles = [axes.get_title() for axes in figure.axes]
        assert titles == (list(SETUPS) if fleet else ["12 setups"])
        (legend,) = figure.legends
        named = [text.get_text() for text in legend.get_texts()]
        assert named == ["seed 42", "seed 43", "seed 44"]
        assert all(len(axes.lines) == 3 for axes in figure.axes)

    def test_a_policy_for_several_setups_has_a_panel_for_each(self, tmp_path):
        """One on which no episode ever ended has none."""
        learning = replace(SMALL.learning, games=6)
        config = replace(SMALL, setups=SETUPS[:3], seeds=1, learning=learning)
        folder = RunFolder.create(tmp_path / "several", config)
        folder.keep_metrics(config.runs, 0)
        for update in range(1, 4):
            row = {"update": [update], "episodes": [update], "return": [2.0 * update]}
            each = {"setup_episodes": [[1, update - 1, 0]]}
            each |= {"setup_return": [[1.0 * update, 3.0 * update, 0.0]]}
            numbers = {name: np.asarray(value) for name, value in (row | each).items()}
            folder.add_metrics(config.runs, [numbers])
        steps = [config.learning.played(update) for update in (1, 2, 3)]
        assert learning_curves(folder) == {
            SETUPS[:1]: [Line("seed 42", steps, [1.0, 2.0, 3.0])],
            SETUPS[1:2]: [Line("seed 42", steps[1:], [6.0, 9.0])],
        }

    def test_long_names_take_lines_and_no_room_of_panels(self):
        names = [f"games/of/my/own/{'long' * 20}/{i}.py:Game" for i in range(3)]
        figure = drawing({tuple(names): [Line("seed 42", [1, 2], [1.0, 2.0])]})
        figure.draw_without_rendering()
        (axes,) = figure.axes
        assert axes.get_title().count("\n") > 2
        assert axes.get_position().width > 0.8

    def test_beyond_the_most_panels_it_says_so(self):
        line = Line("seed 42", [1], [1.0])
        figure = drawing({(str(i),): [line] for i in range(MOST_PANELS + 1)})
        assert len(figure.axes) == MOST_PANELS
        assert "the first 24 of 25" in figure.get_supxlabel()


def test_many_setups_are_counted_in_the_heading_and_named_below(results, tmp_path):
    for fleet, words in ((False, "all of"), (True, "one of")):
        folder = many(tmp_path / words, fleet)
        write_summary(folder, results)
        lines = (folder.path / "SUMMARY.md").read_text(encoding="utf-8").splitlines()
        assert lines[0] == "# 12 setups"
        assert f"Each training plays {words} {', '.join(SETUPS)}." in lines


def test_a_run_that_ended_no_episode_has_no_curve(tmp_path):
    folder = RunFolder(trained(tmp_path / "short", seeds=1))
    assert not write_picture(learning_curves(folder), tmp_path / "curve.png")
    text = summary_page(folder, evaluate_runs(folder))
    assert "<svg" not in text
    assert "How it learned" not in text
    assert "--policy short --policy weakest" in text


class TestCurve:
    def test_a_point_lies_where_its_numbers_say(self):
        line = Line("a", [0, 50, 100], [-10.0, 0.0, 10.0])
        text = curve([line], "x")
        # From the left edge to the right one, from the foot to the top.
        assert 'points="56.0,216.0 341.0,115.0 626.0,14.0"' in text
        for tick in (">−10<", ">−5<", ">0<", ">10<", ">100<"):
            assert tick in text

    def test_one_point_and_equal_numbers_can_be_drawn(self):
        assert "<circle" in curve([Line("a", [5], [3.0])], "x")
        assert "nan" not in curve([Line("a", [5, 6], [0.0, 0.0])], "x")
        assert curve([Line("a", [], [])], "x") == ""

    def test_long_trainings_are_averaged(self):
        count = 10 * MOST_POINTS
        line = Line("a", list(range(count)), [float(i % 10) for i in range(count)])
        points = curve([line], "x").split('points="')[1].split('"')[0].split()
        assert len(points) == MOST_POINTS
        assert len({point.split(",")[1] for point in points}) == 1  # means of 0 … 9

    def test_many_lines_share_a_colour_and_have_no_legend(self):
        few = [Line(f"seed {i}", [1, 2], [1.0, float(i)]) for i in range(6)]
        assert 'class="series-6"' in curve(few, "x")
        assert legend(few).count("<li>") == 6
        many = [*few, Line("seed 6", [1, 2], [1.0, 2.0])]
        assert curve(many, "x").count('class="many"') == 7
        assert legend(many) == legend(few[:1]) == ""

    def test_names_cannot_break_out(self):
        assert "<b>" not in curve([Line("<b>", [1, 2], [1.0, 2.0])], '"<b>')
        lines = [Line("<b>", [1], [1.0]), Line("c", [1], [1.0])]
        assert "<b>" not in legend(lines)


@pytest.mark.parametrize("size", [(1280, 800), (390, 844)], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser(browser, run, size, scheme):
    path = run.path / "summary.html"
    browser.complaints.clear()
    browser.requests.clear()
    browser.resize(*size)
    browser.prefer(prefers_color_scheme=scheme)
    browser.open(path)
    assert browser.run("document.querySelector('h1').textContent").startswith("wild")
    # Wide tables scroll by themselves, the page does not.
    assert browser.run("document.documentElement.scrollWidth <= window.innerWidth")
    drawn = "document.querySelector('svg.curve').getBoundingClientRect().width"
    assert browser.run(drawn) > 200
    stroke = "getComputedStyle(document.querySelector('polyline.series-1')).stroke"
    colours = {"light": "rgb(10, 102, 168)", "dark": "rgb(102, 179, 238)"}
    assert browser.run(stroke) == colours[scheme]
    assert browser.complaints == []
    assert browser.requests == [path.resolve().as_uri()]


def test_many_setups_in_a_browser(browser, results, tmp_path):
    path = tmp_path / "summary.html"
    write_text(path, summary_page(many(tmp_path / "many", False), results))
    for size in ((1280, 800), (390, 844)):
        browser.resize(*size)
        browser.open(path)
        wide = "document.documentElement.scrollWidth <= window.innerWidth"
        assert browser.run(wide)
        # The names of settings have room beside twelve setups.
        room = "parseFloat(getComputedStyle(list).gridTemplateColumns)"
        lists = f"[...document.querySelectorAll('dl')].map(list => {room})"
        assert browser.run(f"Math.min(...{lists})") > 50
