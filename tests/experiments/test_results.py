"""The results that come with the repository: they are the suite's, and can be read."""

import gzip
import json
import re
import sys
from collections import defaultdict

import numpy as np
import pytest

from plato.evaluation.published import paper_cells
from plato.evaluation.significance import best_of, bonferroni, crossed_test
from plato.experiments import suite
from plato.experiments.findings import TESTED, _p
from plato.experiments.store import Store
from said import (
    COUNTS,
    HARD,
    RESULTS,
    ROOT,
    Shown,
    named,
    optimum,
    prose,
    returns,
    tables,
    text,
    trainings,
)


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
    assert not store.changed
    files = sorted((RESULTS / "cells").rglob("*.gz"))
    for path, entry in zip(files, entries, strict=True):
        assert path.name.endswith(f"-{entry.fingerprint}.json.gz")
        cell, protocol = entry.data["cell"], entry.data["cell"]["protocol"]
        first, last = protocol["seeds"]
        for setup in cell["plays"]:
            for rows in entry.data["episodes"][setup].values():
                assert {len(row) for row in rows} == {last + 1 - first}


def test_every_cell_says_what_its_setups_were():
    """Else nobody would notice that one of them has been edited since."""
    for entry in Store(RESULTS).entries():
        cell = entry.data["cell"]
        assert set(entry.data["setups"]) == {*cell["trained_on"], *cell["plays"]}


def test_tables_in_the_docs_are_those_of_the_report():
    """If not: `plato report --format markdown && python docs/tables.py`."""
    sys.path.insert(0, str(ROOT / "docs"))
    from tables import PLACE, filled

    page = text("docs/results.md")
    assert len(PLACE.findall(page)) > 5
    assert filled(page, (RESULTS / "report.md").read_text("utf-8")) == page


def test_returns_in_the_tables_are_of_the_cells():
    """And what is bold is the best by the tests of its protocol."""
    found = list(tables())
    assert {shown.protocol for shown in found} == {"field", "paper"}
    assert len(found) == text("docs/results.md").count(" | return, trained ")
    native = next(shown for shown in found if shown.section.startswith("Native"))
    assert f"t-tests, p < 0.05 / {len(native.rows)};" in prose("results.md")
    for shown in found:
        for column, setup in enumerate(shown.setups):
            runs = {
                row: trainings(row, setup, shown.home, shown.protocol)
                for row in shown.rows
            }
            best = best_row(shown, runs)
            for row, cells in shown.rows.items():
                mean = f"{runs[row].mean():z.2f}"
                expected = f"**{mean} " if row == best else f"{mean} "
                assert cells[column].startswith(expected), (shown.section, row, setup)


def best_row(shown: Shown, runs: dict[str, np.ndarray]) -> str | None:
    """Who is better than all others of a column, beyond doubt."""
    by_seed = {row: own.mean(axis=0) for row, own in runs.items()}
    family = best_of(by_seed, higher_is_better=True)
    if shown.protocol == "paper":
        return family.best if family.significant else None
    tests = [crossed_test(runs[family.best], runs[row]) for row in family.tests]
    level = bonferroni(len(runs))
    beats_all = all(test.p < level and test.difference > 0 for test in tests)
    return family.best if beats_all else None


def test_the_page_says_what_is_not_done():
    """All that is in the paper's tables is."""
    assert "Not done: the suite's trainings of one policy for all" in prose(
        "results.md"
    )
    there = {entry.fingerprint for entry in Store(RESULTS).entries()}
    of_tables = ("methods", "ablation", "given")
    both = suite.protocols(("field", "paper"))
    assert {cell.fingerprint for cell in suite.cells(of_tables, both)} <= there
    rows = {row for _, row, _, _ in returns()}
    general = {row.name for row in suite.ROWS["generalist"]}
    assert rows & general == {suite.SHIPPED}


def report() -> str:
    return (RESULTS / "report.md").read_text()


def test_the_shipped_generalist_in_the_report():
    """The episodes are those of the file that ships, and the counts the report's."""
    field = suite.protocols(("field",))
    cells = suite.cells(("generalist",), field, methods=(suite.SHIPPED,))
    assert len(cells) == 24
    assert all(Store(RESULTS).has(cell) for cell in cells)
    there = re.search(
        r"at most 5 % behind the specialists on (\d+) of 12 native setups, and ahead "
        r"of them on (\d+) of 16 transfers",
        report(),
    )
    said = re.search(
        r"at most 5 % behind the mean of five specialists on (\d+) of 12 native "
        r"setups, .*? and ahead of it in all (\d+) transfers",
        prose("results.md"),
    )
    assert there
    assert said
    assert there.groups() == said.groups()
    marked = re.search(r"in (\d+) of them significantly", prose("results.md"))
    unseen = report().split("### One policy for all: ")[2:]
    rows = [part.partition("| Shipped generalist |")[2] for part in unseen]
    assert len(rows) == 4
    assert marked
    assert sum(row.partition("\n")[0].count("**") for row in rows) == 2 * int(marked[1])
    most = re.search(r"most on 2×3 S2 \((\S+ \[.*?\]) and (\S+)\)", prose("results.md"))
    assert most
    own, theirs = (
        re.findall(rf"^\| {row}(?: \(5\))? \|.*$", report(), re.MULTILINE)
        for row in ("Shipped generalist", "PLATO")
    )
    assert any(f" {most[1]} " in row for row in own)
    assert any(f" {most[2]} [" in row for row in theirs)
    behind = {}
    for setup in suite.NATIVE:
        at = [
            np.mean(list(own.values()))
            for row in (suite.SHIPPED, "PLATO")
            for (protocol, name, _, where), own in returns().items()
            if (protocol, name, f"wildfire-{where}") == ("field", row, setup)
            and where.startswith(setup.removeprefix("wildfire-"))
        ]
        behind[setup] = at[0] / at[-1]
    assert min(behind, key=behind.__getitem__) == "wildfire-2x3-S2"
    times = re.search(r"It had (\d+) times as many steps", prose("results.md"))
    assert times
    assert int(times[1]) == round(suite.SHIPPED_STEPS / 1.2e6)


def test_who_is_better_than_all_given_policies():
    said = re.search(
        r"PLATO and DICG have higher returns than NOOP, Random, Weakest and Strongest "
        r"with p < 0\.01 on all nine setups with S1–S3, DGN on (\w+), and MOHITO on "
        r"(.*?): on the others not than Weakest",
        prose("results.md"),
    )
    assert said

    def sure(row: str, given: str) -> set[str]:
        pairs = {s: (trainings(row, s), trainings(given, s)) for s in HARD}
        tests = {setup: crossed_test(*pair) for setup, pair in pairs.items()}
        return {s for s, test in tests.items() if test.p < 0.01 and test.difference > 0}

    than_all = {}
    for row in ("PLATO", "DICG", "DGN", "MOHITO"):
        than = {g: sure(row, g) for g in ("NOOP", "Random", "Weakest", "Strongest")}
        than_all[row] = set.intersection(*than.values())
        assert than["Weakest"] == than_all[row]
    assert than_all["PLATO"] == than_all["DICG"] == set(HARD)
    assert COUNTS[len(than_all["DGN"])] == said[1]
    assert than_all["MOHITO"] == set(named(said[2]))


def test_what_the_page_says_of_single_trainings():
    """What docs/results.md says beyond its tables."""

    def at_home(row: str, setup: str, protocol: str = "field") -> dict[int, float]:
        return returns()[protocol, row, setup[:3], setup]

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
            away = returns()["field", row, "3x3", f"{target}-{level}-transfer"].values()
            assert round(float(np.mean(list(away))), 1) == number


def test_what_the_page_says_of_transfer():
    said = re.search(
        r"on S1–S3, with own noise, rows of the tables below lie between −(\S+) % and "
        r"(\S+) % of the optimum",
        prose("results.md"),
    )
    assert said
    zero_shot = [s for s in tables() if s.section.startswith("Zero-shot")]
    shares = [
        trainings(row, setup, shown.home).mean() / optimum(setup)
        for shown in zero_shot
        if shown.protocol == "field"
        for row in shown.rows
        for setup in shown.setups
        if "S0" not in setup
    ]
    assert len(shares) == 4 * 4 * 3  # tables, rows and setups
    assert (f"{-100 * min(shares):.1f}", f"{100 * max(shares):.1f}") == said.groups()


def test_every_p_of_the_page_is_of_the_results():
    """`on 3×3 S1 DICG earns more (7.58 and 7.38, p = 0.008)`: more than PLATO."""
    page = prose("results.md")
    said = re.findall(
        r"on (\S+ S\d) (\w+) earns more \((\S+) and (\S+), p = (\S+)\)", page
    )
    assert len(said) == len(re.findall(r"\bp = ", page))
    for place, row, more, less, p in said:
        (setup,) = named(place)
        pair = trainings(row, setup), trainings("PLATO", setup)
        assert [f"{own.mean():.2f}" for own in pair] == [more, less]
        assert pair[0].mean() > pair[1].mean()
        assert _p(crossed_test(*pair).p) == p


def test_what_the_page_says_of_the_planner():
    said = re.search(
        r"A planner that knows the rules\*\* earns as much as PLATO does in the mean "
        r"\((\S+) and (\S+) % of the optimum\): less on (.*?), more on (.*?), "
        r"each with p < ([\d.]+)",
        prose("results.md"),
    )
    assert said
    *shares, less, more, level = said.groups()
    for row, share in zip((suite.PLANNER, "PLATO"), shares, strict=True):
        mean = np.mean([trainings(row, s).mean() / optimum(s) for s in HARD])
        assert f"{100 * mean:.1f}" == share
    # Setups that the page does not name are those that nothing can be said of.
    sure = {"less": [], "more": []}
    for setup in HARD:
        test = crossed_test(trainings(suite.PLANNER, setup), trainings("PLATO", setup))
        if test.p < float(level):
            sure["more" if test.difference > 0 else "less"].append(setup)
    assert sure == {"less": sorted(named(less)), "more": sorted(named(more))}


def test_what_the_readme_says_of_the_methods():
    (head, _, *lines) = re.findall(
        r"^\| \| PLATO \| DICG .*\n(?:\|.*\n)+", text("README.md"), re.MULTILINE
    )[0].splitlines()
    names, shares, reached = (
        [cell.strip() for cell in line[1:-1].split("|")[1:]] for line in (head, *lines)
    )
    assert names.pop() == "a planner that knows the rules"
    for row, share in zip((*names, suite.PLANNER), shares, strict=True):
        mean = np.mean([trainings(row, s).mean() / optimum(s) for s in HARD])
        assert f"{100 * mean:.1f} %" == share
    native = [f"{grid}-{s}" for grid in suite.GRIDS for s in suite.LEVELS]
    for row, said in zip(names[:-1], reached[:-2], strict=True):
        least = {s: paper_cells("native", "return", *s.split("-"))[row] for s in native}
        many = sum(
            round(trainings(row, setup, protocol="paper").mean(), 2) >= cell.mean
            for setup, cell in least.items()
        )
        assert said == f"{many} of {len(native)}"


def test_setups_are_read_as_pages_name_them():
    assert named("on S1 and S3 of 2×3 and on 4×4 S1") == ["2x3-S1", "2x3-S3", "4x4-S1"]
    assert named("S1–S3 of 4×4, 3×3 S0") == ["4x4-S1", "4x4-S2", "4x4-S3", "3x3-S0"]


def test_what_the_baselines_page_says_of_mohito():
    """Its table: rows of the results, rows of the paper, and `p`, of the two rows above
    it. What is left empty is not said."""
    page = text("docs/baselines.md")
    (table,) = re.findall(r"^\| \| 2×3 S0 \|.*\n(?:\|.*\n)+", page, re.MULTILINE)
    lines = [
        [cell.strip() for cell in line[1:-1].split("|")] for line in table.splitlines()
    ]
    (_, *columns), _, *rows = lines
    setups = []
    for column in columns:
        *grid, level = column.replace("×", "x").split()
        setups.append(f"{grid[0] if grid else setups[-1][:3]}-{level}")

    def expected(number: int, setup: str) -> str:
        name = rows[number][0]
        if name == "p":
            above = [trainings(row[0], setup) for row in rows[number - 2 : number]]
            return _p(crossed_test(*above).p)
        if name == "MOHITO by the paper's protocol":
            return f"{trainings('MOHITO', setup, protocol='paper').mean():.2f}"
        if name.endswith(" in the paper"):
            cells = paper_cells("native", "return", *setup.split("-"))
            return f"{cells[name.removesuffix(' in the paper')].mean:.2f}"
        return f"{trainings(name, setup).mean():.2f}"

    assert {"MOHITO", "Random", "p"} <= {row[0] for row in rows}
    for number, (_, *cells) in enumerate(rows):
        said = [(s, cell) for s, cell in zip(setups, cells, strict=True) if cell]
        assert said
        assert said == [(setup, expected(number, setup)) for setup, _ in said]


def test_what_mohito_reaches_and_what_not():
    said = re.search(
        r"They are better than Random with p < 0.01 on all of these but (.*?), where "
        r"they earn more, but trainings differ too much to be sure .*?\. They have the "
        r"maximum on S0\. By the paper's protocol they have at least the paper's mean "
        r"returns on all but (.*?), nearly eight times as high on (.*?)\. On (.*?) all "
        r"five trainings come to put both fires out at once, which is worth 4\.00 ",
        prose("baselines.md"),
    )
    assert said
    unsure, missed, eight, at_once = map(named, said.groups())
    there = [f"{grid}-{s}" for grid in suite.GRIDS for s in suite.LEVELS]
    tests = {
        setup: crossed_test(trainings("MOHITO", setup), trainings("Random", setup))
        for setup in there
    }
    assert all(test.difference > 0 for test in tests.values())
    assert [setup for setup in there if tests[setup].p >= 0.01] == unsure
    for setup in ("2x3-S0", "3x3-S0", "4x4-S0"):
        assert (trainings("MOHITO", setup) == optimum(setup)).all()
    paper = {
        setup: paper_cells("native", "return", *setup.split("-"))["MOHITO"].mean
        for setup in there
    }
    times = {
        s: trainings("MOHITO", s, protocol="paper").mean() / paper[s] for s in there
    }
    assert [setup for setup in there if times[setup] < 1] == missed
    assert [setup for setup in there if 7.5 < times[setup] < 8] == eight
    for setup in at_once:
        assert (trainings("MOHITO", setup, protocol="paper") == 4).all()


def test_what_mohito_leaves_alone_on_4x4_s0():
    said = (
        "The best has the maximum in all five trainings; three of the fifteen do not: "
        "two leave one fire alone to the end, and with the third one burns out"
    )
    assert said in prose("baselines.md")
    paths = (RESULTS / "cells" / "paper" / "mohito").glob("wildfire-4x4-S0-*.gz")
    cells = [json.loads(gzip.decompress(path.read_bytes())) for path in paths]
    played = [cell["episodes"]["wildfire-4x4-S0"] for cell in cells]
    mean, burnt, out = (
        np.array([np.mean(one[name], axis=1) for one in played])
        for name in ("return", "burnouts", "putouts")
    )
    most = optimum("4x4-S0")
    assert mean.shape == (5, 3)
    assert (mean[:, 0] == most).all()
    assert (mean < most).sum() == 3
    assert ((burnt == 0) & (out == 5)).sum() == 2
    assert (burnt > 0).sum() == 1


def test_ten_trainings_of_mohito_on_2x3_s1():
    said = re.search(
        r"ten trainings are enough to tell MOHITO from Random there, too: (\S+), "
        r"p = (\S+) ",
        prose("baselines.md"),
    )
    assert said
    asked = {"methods": ("MOHITO",), "setups": ("wildfire-2x3-S1",), "seeds": 10}
    cells = suite.cells(("methods",), suite.protocols(("field",)), **asked)
    stores = [Store(RESULTS), Store(RESULTS / "ten")]
    there = {e.fingerprint: e.data for store in stores for e in store.entries()}
    played = [there[cell.fingerprint]["episodes"] for cell in cells]
    ten = np.concatenate([one["wildfire-2x3-S1"]["return"] for one in played]) / 1.0
    assert len(ten) == 10
    test = crossed_test(ten, trainings("Random", "2x3-S1"))
    assert (f"{ten.mean():.2f}", _p(test.p)) == said.groups()


@pytest.mark.parametrize("row", ["DICG", "DGN"])
def test_baselines_that_are_better_than_random_everywhere(row):
    assert "(DICG and DGN are on all twelve setups)" in prose("baselines.md")
    for setup in (f"{grid}-{s}" for grid in suite.GRIDS for s in suite.LEVELS):
        test = crossed_test(trainings(row, setup), trainings("Random", setup))
        assert test.difference > 0
        assert test.p < 0.01


@pytest.fixture(scope="module")
def seconds() -> dict[tuple[str, str], dict[int, float]]:
    """By protocol and row, and by seed: what all cells took."""
    found = defaultdict(lambda: defaultdict(float))
    for entry in Store(RESULTS).entries():
        cell = entry.data["cell"]
        took = sum(entry.data["seconds"].values())
        found[cell["protocol"]["name"], cell["row"]][cell["seed"]] += took
    return {place: dict(seeds) for place, seeds in found.items()}


def test_what_the_page_says_it_took(seconds):
    def table(head: str) -> list[list[str]]:
        page = (ROOT / "docs" / "reproduction.md").read_text("utf-8")
        (found,) = re.findall(rf"^\| {head}.*\n\|-.*\n((?:\|.*\n)+)", page, re.M)
        lines = found.replace(",", "").replace(" s |", " |").splitlines()
        return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]

    def process(protocol: str, row: str) -> float:
        return sum(seconds[protocol, row].values())

    *parts, whole_suite = table("side by side")
    assert int(whole_suite[1]) == sum(int(part[1]) for part in parts)
    assert int(whole_suite[2]) == sum(int(part[2]) for part in parts)
    assert f"takes {int(whole_suite[2]) // 60} minutes" in prose("reproduction.md")
    share, whole = table(r"\| PLATO \| DICG")
    methods = ("PLATO", "DICG", "DGN", "MOHITO")
    shares = [seconds["field", row][42] for row in methods]
    assert share[1:] == [f"{s:.0f}" for s in (*shares, sum(shares))]
    wholes = [process("field", row) for row in methods]
    assert whole[1:] == [f"{s:.0f}" for s in (*wholes, sum(wholes))]


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
