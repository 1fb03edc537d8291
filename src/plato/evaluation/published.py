"""The numbers that the paper prints, to be put beside ours."""

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal, TypeAlias

PaperTable: TypeAlias = Literal[
    "native", "zero_shot", "ablation_native", "ablation_zero_shot", "openness_events"
]
ALL_MODELS = "all models"
"""The one row of the table of openness events."""


@dataclass(frozen=True)
class PaperCell:
    """One printed cell."""

    mean: float
    std: float
    bold: bool
    """Whether the paper calls it the significant best."""


def paper_cells(
    table: PaperTable, metric: str, grids: str, level: str
) -> dict[str, PaperCell]:
    """The column of one setup, by model; empty where the paper prints none.

    `grids` is one (`3x3`), or for zero-shot tables two (`2x3->3x3`); `level` is S0–S3.
    """
    column = _tables()[table].get(metric, {}).get(grids, {}).get(level, {})
    return {model: PaperCell(*cell) for model, cell in column.items()}


@cache
def _tables() -> dict[str, dict[str, dict[str, dict[str, dict[str, list]]]]]:
    text = (resources.files("plato") / "data" / "paper_tables.json").read_text("utf-8")
    return json.loads(text)["tables"]
