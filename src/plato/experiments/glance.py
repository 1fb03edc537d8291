"""A store at a glance: what its tables come down to, in a few sentences."""

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from plato.evaluation.comparison import Comparison
from plato.evaluation.contestants import grid_of, level_of
from plato.evaluation.published import paper_cells
from plato.experiments import suite
from plato.experiments.findings import SURE, agreement, surely_beats
from plato.experiments.sections import Section

CLOSE = 0.05
"""How far a generalist may stay behind the specialists and still be called close."""


def glance(by_protocol: Mapping[str, Sequence[Section]]) -> list[str]:
    """What can be said, the field's protocol first."""
    said: list[str] = []
    for name in ("field", "paper"):
        parts = by_protocol.get(name, ())
        for part in parts:
            if part.comparison is None:
                continue
            if part.kind == "native":
                about = _field if name == "field" else _paper
                said += about(part.comparison)
            elif part.kind == "planner" and name == "field":
                said += _field(part.comparison, but=part.comparison.trained)
        said += _generalist(parts, name)
    return said


def _field(native: Comparison, but: Sequence[str] = ()) -> list[str]:
    """Shares of the optimum, `but` for rows that have been named; who beats whom."""
    # On S0 every fire is put out by almost anyone.
    setups = [s for s in native.setups if level_of(s) != "S0"]
    said, known = [], [s for s in setups if s in native.optimum]
    if known:
        shares = "; ".join(
            f"{name} {100 * np.mean([_share(native, name, s) for s in known]):.1f} %"
            for name in native.contestants
            if name not in but
        )
        said.append(
            f"Own noise for every episode: mean share of the optimal return on the "
            f"{len(known)} setups with S1–S3: {shares}."
        )
    return said + _over_given(native, setups)


def _over_given(comparison: Comparison, setups: Sequence[str]) -> list[str]:
    """On how many setups each trained row surely has higher returns than all given."""
    given = [n for n in comparison.contestants if n not in comparison.trained]
    if not setups or not given:
        return []
    counts = "; ".join(
        f"{name} on {sum(_beats(comparison, name, given, s) for s in setups)}"
        for name in comparison.trained
    )
    every = "every one of " if len(given) > 1 else ""
    return [
        f"Higher returns than {every}{', '.join(given)}, with p < {SURE} over "
        f"trainings and episodes, on the {len(setups)} setups with S1–S3: {counts}."
    ]


def _beats(native: Comparison, name: str, others: Sequence[str], setup: str) -> bool:
    return all(surely_beats(native, name, other, setup) for other in others)


def _share(native: Comparison, name: str, setup: str) -> float:
    return native.cells[name, setup, "return"].mean / native.optimum[setup]


def _paper(native: Comparison) -> list[str]:
    reached = [
        f"{name} on {sum(ours >= theirs for ours, theirs in pairs)} of {len(pairs)}"
        for name in native.trained
        if (pairs := _beside_paper(native, name))
    ]
    said = []
    if reached:
        said.append(
            f"The paper's noise: at least the mean return that the paper prints for "
            f"the same method: {', '.join(reached)} native setups."
        )
    agree, columns = agreement(native)
    said.append(
        f"Who is significantly best, by five metrics on {len(native.setups)} native "
        f"setups: the same as in the paper in {agree} of {columns} columns."
    )
    return said


def _beside_paper(native: Comparison, name: str) -> list[tuple[float, float]]:
    """Mean returns here and in the paper, to its two decimals, where it has any."""
    pairs = []
    for setup in native.setups:
        grid, level = grid_of(setup) or "", level_of(setup) or ""
        printed = paper_cells("native", "return", grid, level).get(name)
        if printed is not None:
            ours = native.cells[name, setup, "return"].mean
            pairs.append((round(ours, 2), printed.mean))
    return pairs


def _generalist(parts: Sequence[Section], protocol: str) -> list[str]:
    """How each policy for all stands beside PLATO trained for one."""
    close: dict[str, list[bool]] = defaultdict(list)
    ahead: dict[str, list[bool]] = defaultdict(list)
    for part in parts:
        if part.kind not in ("general", "unseen") or part.comparison is None:
            continue
        cells = part.comparison.cells
        *general, special = part.comparison.contestants
        if special != suite.PLATO.name:
            continue
        for name, setup in itertools.product(general, part.comparison.setups):
            own, other = (cells[n, setup, "return"].mean for n in (name, special))
            if part.kind == "general":
                close[name].append(own >= other - CLOSE * abs(other))
            else:
                ahead[name].append(own > other)
    return [
        f"One policy for all ({name}, {protocol} protocol): at most "
        f"{100 * CLOSE:.0f} % behind the specialists on {sum(near)} of {len(near)} "
        f"native setups, and ahead of them on {sum(ahead[name])} of "
        f"{len(ahead[name])} transfers."
        for name, near in close.items()
    ]
