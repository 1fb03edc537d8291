"""Experiments as console tables."""

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from plato.evaluation.fitting import table_in_parts
from plato.evaluation.metrics import METRICS
from plato.experiments.heuristics import Comparison


def heuristics_table(comparisons: Sequence[Comparison], width: int) -> RenderableType:
    """A row for each grid, setup and policy: ours, the paper's in brackets."""
    names = dict.fromkeys(comparison.metric for comparison in comparisons)
    grids: dict[str, dict[tuple[str, str], list[Text]]] = {}
    for cell in comparisons:
        about = (f"{cell.grid} {cell.setup}", cell.policy)
        rows = grids.setdefault(cell.grid, {})
        rows.setdefault(about, [Text(name) for name in about]).append(_cell(cell))
    return table_in_parts(
        ["setup", "policy", *(METRICS[name].label for name in names)],
        [list(rows.values()) for rows in grids.values()],
        width,
        names=2,
    )


def _cell(cell: Comparison) -> Text:
    mean, std = cell.ours
    paper_mean, paper_std = cell.paper
    text = f"{mean:z.2f}±{std:.2f} ({paper_mean:z.2f}±{paper_std:.2f})"
    return Text(text, "" if cell.agreements == 2 else "bold red")
