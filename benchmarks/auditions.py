"""When returns tell how a training will end: for `--beginnings` and `--audition`.

    python benchmarks/auditions.py RUN [--beginnings 4]

RUN holds several trainings of each setup, without beginnings (`plato train --seeds 8`).
A row has, for a part of the training, the correlation over trainings between the
return there, a mean of ten updates, and that of the last twentieth (ten at least); and
how they end in the mean if of so many beginnings the best one there goes on.
"""

import argparse
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

from plato.runs.folder import RunFolder

PARTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)
WINDOW = 10
"""Updates whose returns count."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--beginnings", type=int, default=4)
    options = parser.parse_args()
    folder = RunFolder(options.run)
    by_setup: dict[tuple[str, ...], list[list[float | None]]] = {}
    for run in folder.config().runs:
        curve = [row["return"] for row in folder.read_metrics(run)]
        by_setup.setdefault(run.setups, []).append(curve)
    for setups, found in by_setup.items():
        curves = np.asarray(found, float)  # NaN where no episode ended
        print(f"\n{', '.join(setups)}: {len(curves)} trainings\n")
        print(f"| after | correlation | best of {options.beginnings} ends at |")
        print("|---:|---:|---:|")
        for row in rows(curves, options.beginnings):
            print(row)


def rows(curves: np.ndarray, beginnings: int) -> Sequence[str]:
    """A row for each part of trainings, whose returns are given."""
    updates = curves.shape[1]
    end = np.nanmean(curves[:, -max(updates // 20, WINDOW) :], axis=1)
    found = [f"| (all) | | {end.mean():.1f} |"]
    for part in PARTS:
        now = round(part * updates)
        there = np.nanmean(curves[:, max(now - WINDOW, 0) : now], axis=1)
        correlation = np.corrcoef(there, end)[0, 1]
        chosen = [
            end[list(some)][there[list(some)].argmax()]
            for some in combinations(range(len(end)), beginnings)
        ]
        found.append(f"| {part:.0%} | {correlation:.2f} | {np.mean(chosen):.1f} |")
    return found


if __name__ == "__main__":
    main()
