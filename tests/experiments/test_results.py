"""The results that come with the repository: they are the suite's, and can be read."""

import sys
from pathlib import Path

from plato.experiments import suite
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
