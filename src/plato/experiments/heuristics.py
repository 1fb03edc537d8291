"""The paper's heuristic rows, reproduced number by number.

NOOP, Weakest and Strongest on the twelve native setups, by the paper's noise protocol
and with the released heuristics, next to the 360 numbers that the paper prints.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from plato.evaluation.evaluate import evaluate
from plato.evaluation.metrics import METRICS, mean_and_std
from plato.evaluation.published import paper_cells

GRIDS = ("2x3", "3x3", "4x4")
SETUPS = ("S0", "S1", "S2", "S3")
POLICIES = {
    "NOOP": "noop",
    "Weakest": "weakest-released",
    "Strongest": "strongest-released",
}
FIRST_SEED, EPISODES = 200, 50


@dataclass(frozen=True)
class Comparison:
    """One printed cell of the paper, and ours."""

    grid: str
    setup: str
    policy: str
    metric: str
    ours: tuple[float, float]
    paper: tuple[float, float]

    @property
    def agreements(self) -> int:
        """How many of mean and standard deviation agree to two decimals."""
        pairs = zip(self.ours, self.paper, strict=True)
        return sum(_printed(ours) == _printed(theirs) for ours, theirs in pairs)


def compare_heuristics() -> Iterator[Comparison]:
    """Plays every cell and compares it, yielding as it goes."""
    for grid in GRIDS:
        for setup in SETUPS:
            for row, policy in POLICIES.items():
                result = evaluate(
                    policy,
                    f"wildfire-{grid}-{setup}",
                    episodes=EPISODES,
                    seed=FIRST_SEED,
                    noise="paper",
                )
                for metric in METRICS:
                    cells = paper_cells("native", metric, grid, setup)
                    if row in cells:  # the paper prints five of the metrics
                        paper = cells[row].mean, cells[row].std
                        ours = mean_and_std(result.metrics[metric])
                        yield Comparison(grid, setup, row, metric, ours, paper)


def _printed(number: float) -> str:
    return f"{number:z.2f}"
