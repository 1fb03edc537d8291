"""What pages of the documentation say of results, and the results to hold it against.

Pages name setups as `3×3 S1`, `S1 and S3 of 2×3` or `S1–S3 of 4×4`; the results, and
all that is here, as `3x3-S1`, and one that is played zero-shot as `3x3-S1-transfer`.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

import numpy as np

from plato.domains.setups import load_setup
from plato.domains.wildfire.optimum.known import known_optimum
from plato.evaluation.contestants import grid_of
from plato.evaluation.protocols import ProtocolName
from plato.experiments import suite
from plato.experiments.store import Store

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
HARD = [f"{grid}-{s}" for grid in suite.GRIDS for s in suite.LEVELS if s != "S0"]
"""The native setups that are open."""
COUNTS = (
    *("no", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)
"""Numbers as pages write them."""
Place: TypeAlias = tuple[str, str, str | None, str]
"""Protocol, row, grid of training (None for a given policy) and setup."""


@dataclass(frozen=True)
class Shown:
    """A table of results.md that comes from the report, with its setups."""

    section: str
    protocol: ProtocolName
    home: str
    setups: tuple[str, ...]
    rows: dict[str, list[str]]
    """The cells of each of our rows."""


@cache
def episodes() -> dict[Place, dict[int, np.ndarray]]:
    """Returns of every training, seed by seed."""
    found = defaultdict(dict)
    for entry in Store(RESULTS).entries():
        cell = entry.data["cell"]
        home = grid_of(cell["trained_on"][0]) if cell["trained_on"] else None
        for setup in cell["plays"]:
            place = (cell["protocol"]["name"], cell["row"], home, setup[9:])
            policies = np.asarray(entry.data["episodes"][setup]["return"], np.float64)
            found[place][cell["seed"]] = policies.mean(axis=0)
    return dict(found)


@cache
def returns() -> dict[Place, dict[int, float]]:
    """Mean return of every training."""
    return {
        place: {seed: float(own.mean()) for seed, own in those.items()}
        for place, those in episodes().items()
    }


def trainings(
    row: str, setup: str, home: str | None = None, protocol: ProtocolName = "field"
) -> np.ndarray:
    """A row's returns on a setup: a line for each training, on its grid if no other."""
    given = (protocol, row, None, setup)
    place = given if given in episodes() else (protocol, row, home or setup[:3], setup)
    return np.stack([own for _, own in sorted(episodes()[place].items())])


def optimum(setup: str) -> float:
    """The best return there can be on average."""
    known = known_optimum(load_setup(f"wildfire-{setup}"))
    assert known is not None
    return known


def text(page: str) -> str:
    """A page, by its path in the repository."""
    return (ROOT / page).read_text("utf-8")


def prose(page: str) -> str:
    """A page of the docs, on one line."""
    return " ".join(text(f"docs/{page}").split())


def named(text: str) -> list[str]:
    """The setups in a text."""
    levels = r"S\d(?:–S\d)?(?:(?:, | and )S\d(?:–S\d)?)*"
    found = re.findall(rf"(\d×\d) ({levels})|({levels}) of (\d×\d)", text)
    return [
        f"{(before or after).replace('×', 'x')}-S{level}"
        for before, own, others, after in found
        for first, last in re.findall(r"S(\d)(?:–S(\d))?", own or others)
        for level in range(int(first), int(last or first) + 1)
    ]


def tables() -> Iterator[Shown]:
    """The tables of returns in results.md, without the paper's rows."""
    for section, caption, lines in re.findall(
        r"<!-- table: (.+?) \| return, (trained .*?)(?: \| ours)? -->\n\n((?:\|.*\n)+)",
        text("docs/results.md"),
    ):
        grids = [grid.replace("×", "x") for grid in re.findall(r"\d×\d", caption)]
        ending = "-transfer" if "zero-shot" in caption else ""
        head, _, *body = (
            [cell.strip() for cell in line[1:-1].split("|")]
            for line in lines.splitlines()
        )
        own = [cells for cells in body if not cells[0].endswith("(paper)")]
        yield Shown(
            section,
            "paper" if caption.endswith("paper protocol") else "field",
            grids[0],
            tuple(f"{grids[-1]}-{level}{ending}" for level in head[1:]),
            {_row(name): cells for name, *cells in own},
        )


def _row(name: str) -> str:
    """Without its number of trainings; PLATO itself is the ablation's mlp+add."""
    name = name.split(" (")[0]
    return "PLATO" if name == "mlp+add" else name
