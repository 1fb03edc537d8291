"""Experiments as console tables."""

from collections.abc import Sequence

from rich import box
from rich.table import Table

from plato.evaluation.metrics import METRICS
from plato.experiments.heuristics import Comparison


def heuristics_table(comparisons: Sequence[Comparison]) -> Table:
    """A row for each grid, setup and policy: ours, the paper's in brackets."""
    names = list(dict.fromkeys(comparison.metric for comparison in comparisons))
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    table.add_column("setup", no_wrap=True)
    table.add_column("policy", no_wrap=True)
    for name in names:
        table.add_column(METRICS[name].label, justify="right")
    rows: dict[tuple[str, str, str], list[str]] = {}
    for cell in comparisons:
        key = (cell.grid, cell.setup, cell.policy)
        rows.setdefault(key, []).append(_cell(cell))
    last_grid = None
    for (grid, setup, policy), cells in rows.items():
        if last_grid not in (None, grid):
            table.add_section()
        last_grid = grid
        table.add_row(f"{grid} {setup}", policy, *cells)
    return table


def _cell(cell: Comparison) -> str:
    mean, std = cell.ours
    paper_mean, paper_std = cell.paper
    text = f"{mean:z.2f}±{std:.2f} ({paper_mean:z.2f}±{paper_std:.2f})"
    return text if cell.agreements == 2 else f"[bold red]{text}[/]"
