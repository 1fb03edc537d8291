"""Pictures of a report. Extra: plots; without it, a report has none."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from plato.evaluation.contestants import grid_of, level_of
from plato.evaluation.plots import against_optimum, style
from plato.experiments import suite
from plato.experiments.recorded import Done
from plato.experiments.sections import Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 11.0
"""Inches."""


def can_draw() -> bool:
    return find_spec("matplotlib") is not None


def pictures(found: Sequence[Done], parts: Sequence[Section]) -> "dict[str, Figure]":
    """Pictures by their captions."""
    if not can_draw():
        return {}
    drawn = {}
    native = next((part for part in parts if part.title == "Native setups"), None)
    if native is not None and native.comparison is not None:
        if native.comparison.optimum:
            figure = against_optimum(native.comparison)
            figure.set_size_inches(WIDTH, 3.2)
            drawn["Mean return as a percentage of the exact optimum"] = figure
        curves = _curves(found)
        if curves is not None:
            drawn[
                "Return in training, by environment steps: mean over trainings, and "
                "from the worst to the best of them"
            ] = curves
    return drawn


def _curves(found: Sequence[Done]) -> "Figure | None":
    from matplotlib.figure import Figure

    names = [row.name for row in suite.ROWS["methods"]]
    trained = [o for o in found if o.cell.row.name in names and o.cell.trained_on]
    setups = [
        s for s in suite.NATIVE if any(o.cell.trained_on == (s,) for o in trained)
    ]
    if not setups:
        return None
    columns = min(len(setups), 4)
    rows = -(-len(setups) // columns)
    figure = Figure(figsize=(WIDTH, 2.1 * rows + 0.5), layout="constrained")
    for i, setup in enumerate(setups):
        axes = figure.add_subplot(rows, columns, i + 1)
        for j, name in enumerate(names):
            own = [
                one.entry.data["curve"]
                for one in trained
                if one.cell.row.name == name and one.cell.trained_on == (setup,)
            ]
            if not own or not own[0]["steps"]:  # no episode ended in training
                continue
            steps = own[0]["steps"]
            lines = np.asarray([c["return"] for c in own if c["steps"] == steps])
            look = style(j)
            axes.plot(steps, lines.mean(axis=0), label=name, **look)
            low, high = lines.min(axis=0), lines.max(axis=0)
            axes.fill_between(steps, low, high, color=look["color"], alpha=0.15, lw=0)
        title = f"{grid_of(setup)} {level_of(setup)}".replace("x", "×")
        axes.set_title(title, fontsize=9)
        axes.tick_params(labelsize=7)
        axes.grid(alpha=0.3, linewidth=0.5)
        axes.spines[["top", "right"]].set_visible(False)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper center", ncols=len(labels), frameon=False
    )
    return figure
