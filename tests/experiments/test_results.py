"""The results that come with the repository: they are the suite's, and can be read."""

import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from plato.domains.setups import load_setup
from plato.domains.wildfire.optimum.known import known_optimum
from plato.evaluation.contestants import grid_of
from plato.evaluation.published import paper_cells
from plato.experiments import suite
from plato.experiments.findings import TESTED
from plato.experiments.store import Store

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"


def test_every_cell_is_one_of_the_suites():
    """A setting that changes makes other cells: these results are then no longer
    those of `plato reproduce`, and have to be made anew."""
    cells = suite.cells(tuple(suite.ROWS), suite.protocols(("field", "paper")))
    expected = {f"{cell.key}.json.gz" for cell in cells}
    root = RESULTS / "cells"
    there = {path.relative_to(root).as_posix() for path in root.rglob("*.gz")}
    assert there
    assert there <= expected


def test_every_cell_can_be_read():
    store = Store(RESULTS)
    entries = list(store.entries())
    assert not store.damaged
    for entry in entries:
        cell, protocol = entry.data["cell"], entry.data["cell"]["protocol"]
        first, last = protocol["seeds"]
        for setup in cell["plays"]:
            for rows in entry.data["episodes"][setup].values():
                assert {len(row) for row in rows} == {last + 1 - first}


def test_tables_in_the_docs_are_those_of_the_report():
    """If not: `plato report --format markdown && python docs/tables.py`."""
    sys.path.insert(0, str(ROOT / "docs"))
    from tables import PLACE, filled

    page = (ROOT / "docs" / "results.md").read_text("utf-8")
    assert len(PLACE.findall(page)) > 5
    assert filled(page, (RESULTS / "report.md").read_text("utf-8")) == page


@pytest.fixture(scope="module")
def returns() -> dict[tuple[str, str, str, str], dict[int, float]]:
    """Mean return of every training, by protocol, row, grid of training and setup."""
    found = defaultdict(dict)
    for entry in Store(RESULTS).entries():
        cell = entry.data["cell"]
        home = grid_of(cell["trained_on"][0]) if cell["trained_on"] else None
        for setup in cell["plays"]:
            key = (cell["protocol"]["name"], cell["row"], home, setup[9:])
            mean = np.mean(entry.data["episodes"][setup]["return"])
            found[key][cell["seed"]] = float(mean)
    return found


def test_what_the_page_says_of_single_trainings(returns):
    """What docs/results.md says beyond its tables."""

    def at_home(row: str, setup: str, protocol: str = "field") -> dict[int, float]:
        return returns[protocol, row, setup[:3], setup]

    for setup, least, most in (("2x3-S1", 39, 79), ("3x3-S2", 74, 121)):
        dgn = at_home("DGN", setup).values()
        assert (round(min(dgn)), round(max(dgn))) == (least, most)
    for setup, least in (("3x3-S3", 84), ("4x4-S1", 64)):
        assert round(min(at_home("away removed", setup).values())) == least
    four = at_home("four beginnings", "4x4-S1").values()
    assert (round(min(four)), round(max(four))) == (16, 53)
    shares = [
        np.mean([at_home("Algorithm 1", f"{grid}-{s}")[n] for n in (42, 43, 44)])
        / np.mean([at_home("PLATO", f"{grid}-{s}")[n] for n in (42, 43, 44)])
        for grid in suite.GRIDS
        for s in ("S1", "S2", "S3")
    ]
    assert (round(100 * min(shares)), round(100 * max(shares))) == (45, 95)
    shares = [
        np.mean(list(at_home("Algorithm 1", f"{grid}-{s}").values()))
        / paper_cells("native", "return", grid, s)["PLATO"].mean
        for grid in ("3x3", "4x4")
        for s in ("S2", "S3")
    ]
    assert (round(100 * min(shares)), round(100 * max(shares))) == (88, 91)
    low, next_low, *others = sorted(at_home("PLATO", "4x4-S1", "paper").values())
    assert (round(low), round(next_low)) == (39, 40)
    assert round(float(np.mean(others)), 1) == 98.8
    for setup, row, ends in (
        ("2x3-S1", "PLATO", (83, 88)),
        ("2x3-S1", "DICG", (89, 96)),
        ("2x3-S2", "PLATO", (78, 82)),
        ("2x3-S2", "DICG", (72, 84)),
    ):
        those = at_home(row, setup, "paper").values()
        assert (round(min(those)), round(max(those))) == ends
    for row, target, *said in (
        ("PLATO", "5x5", 74.4, 46.9),
        ("away removed", "5x5", 22.9, 1.0),
        ("Algorithm 1 + ego", "5x5", 42.9, 26.1),
        ("Algorithm 1 + ego", "4x4", 68.2, 53.9),
        ("PLATO", "4x4", 56.6, 25.8),
    ):
        for level, number in zip(("S2", "S3"), said, strict=True):
            away = returns["field", row, "3x3", f"{target}-{level}-transfer"].values()
            assert round(float(np.mean(list(away))), 1) == number


def test_what_the_page_says_of_transfer(returns):
    def optimum(setup: str) -> float:
        known = known_optimum(load_setup(f"wildfire-{setup}"))
        assert known is not None
        return known

    shares = [
        np.mean(list(those.values())) / optimum(setup)
        for (protocol, row, _, setup), those in returns.items()
        if protocol == "field" and row in ("PLATO", "DICG", "DGN")
        if setup.endswith("transfer") and "S0" not in setup
    ]
    assert len(shares) == 36
    assert (round(100 * min(shares)), round(100 * max(shares))) == (-7, 64)


def test_what_the_baselines_page_says_of_mohito(returns):
    page = (ROOT / "docs" / "baselines.md").read_text("utf-8")
    for row, home in (("MOHITO", True), ("Random", False)):
        means = [
            np.mean(list(those.values()))
            for grid in ("2x3", "3x3")
            for level in suite.LEVELS
            if (
                those := returns[
                    "field", row, grid if home else None, f"{grid}-{level}"
                ]
            )
        ]
        assert f"| {row} | {' | '.join(f'{mean:.2f}' for mean in means)} |" in page


def test_random_is_nearly_the_papers():
    within = []
    for entry in Store(RESULTS).entries():
        cell = entry.data["cell"]
        if cell["row"] == "Random" and cell["protocol"]["name"] == "paper":
            (setup,) = cell["plays"]
            _, grid, level = setup.split("-")
            for metric in TESTED:
                printed = paper_cells("native", metric, grid, level)["Random"]
                ours = np.asarray(entry.data["episodes"][setup][metric][0])
                error = np.hypot(ours.std(ddof=1), printed.std) / len(ours) ** 0.5
                within.append(abs(ours.mean() - printed.mean) < 2 * error)
    assert (sum(within), len(within)) == (52, 60)
