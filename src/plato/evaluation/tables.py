"""Evaluations as console tables."""

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from plato.evaluation.evaluate import Evaluation
from plato.evaluation.metrics import mean_and_std, shown

FULL_WIDTH = 125
"""Columns that the table takes with standard deviations."""


def evaluation_table(evaluations: Sequence[Evaluation], width: int) -> RenderableType:
    """A section for each setup, a row for each policy, and the protocol below.

    A console too narrow for the standard deviations gets the means alone.
    """
    with_std = width >= FULL_WIDTH
    table = Table(
        box=box.SIMPLE_HEAD,
        header_style="bold",
        padding=(0, 1) if with_std else 0,
        pad_edge=False,
        collapse_padding=True,
    )
    # A long path is folded rather than numbers cut.
    table.add_column("", overflow="fold", max_width=max(width // 3, 20))
    metrics = shown([row.metrics for row in evaluations])
    for metric in metrics.values():
        table.add_column(metric.label, justify="right")
    setup = None
    for row in evaluations:
        if row.setup != setup:
            if setup is not None:
                table.add_section()
            table.add_row(Text(row.setup, style="bold"))
            setup = row.setup
        cells = [mean_and_std(row.metrics[name]) for name in metrics]
        table.add_row(f"  {row.policy}", *(_cell(*cell, with_std) for cell in cells))
    first = evaluations[0]
    last_seed = first.first_seed + first.episodes - 1
    numbers = "mean ± sample standard deviation" if with_std else "mean"
    note = (
        f"{numbers} over {first.episodes} episodes "
        f"(seeds {first.first_seed}–{last_seed}), {first.noise} noise"
    )
    return Group(table, Text(note, style="dim"))


def _cell(mean: float, std: float, with_std: bool) -> str:
    return f"{mean:z.2f} ± {std:.2f}" if with_std else f"{mean:z.2f}"
