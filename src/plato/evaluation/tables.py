"""Evaluations as console tables."""

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from plato.evaluation.evaluate import Evaluation
from plato.evaluation.metrics import METRICS, mean_and_std

FULL_WIDTH = 140
"""Columns that the table takes with standard deviations."""


def evaluation_table(evaluations: Sequence[Evaluation], width: int) -> RenderableType:
    """One row for each policy and setup, with the protocol that made it below.

    A console too narrow for the standard deviations gets the means alone.
    """
    with_std = width >= FULL_WIDTH
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    table.add_column("setup", no_wrap=True)
    table.add_column("policy", no_wrap=True)
    for metric in METRICS.values():
        table.add_column(metric.label, justify="right", no_wrap=True)
    for before, row in zip([None, *evaluations], evaluations, strict=False):
        new_setup = before is None or before.setup != row.setup
        if before is not None and new_setup:
            table.add_section()
        cells = [mean_and_std(row.metrics[name]) for name in METRICS]
        table.add_row(
            row.setup if new_setup else "",
            row.policy,
            *(
                f"{mean:z.2f} ± {std:.2f}" if with_std else f"{mean:z.2f}"
                for mean, std in cells
            ),
        )
    first = evaluations[0]
    last_seed = first.first_seed + first.episodes - 1
    shown = "mean ± sample standard deviation" if with_std else "mean"
    note = (
        f"{shown} over {first.episodes} episodes "
        f"(seeds {first.first_seed}–{last_seed}), {first.noise} noise"
    )
    return Group(table, Text(note, style="dim"))
