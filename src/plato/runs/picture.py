"""curve.png of a finished run: its learning curves, a panel for each setup trained on.

Extra: plots.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from plato.evaluation.plots import OKABE_ITO
from plato.files import write_bytes
from plato.runs.curves import short
from plato.runs.lines import MOST_PANELS, Curves, Line
from plato.runs.words import title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ALONE, AMONG_OTHERS = (6.0, 3.5), (3.0, 2.2)
"""Inches of a panel."""
COLUMNS = 3
LETTERS = 14
"""Of a panel's title, in an inch."""


def write_picture(curves: Curves, path: Path) -> bool:
    """Draws the curves; False where there are none, or no Matplotlib."""
    if not curves:
        return False
    try:
        figure = drawing(curves)
    except ImportError:
        return False
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=150)
    write_bytes(path, picture.getvalue())
    return True


def drawing(curves: Curves) -> "Figure":
    """The return of finished episodes over steps."""
    from matplotlib.figure import Figure

    panels = list(curves.items())[:MOST_PANELS]
    columns = min(len(panels), COLUMNS)
    rows = -(-len(panels) // columns)
    width, height = ALONE if len(panels) == 1 else AMONG_OTHERS
    figure = Figure(figsize=(columns * width, rows * height), layout="constrained")
    for place, (setups, lines) in enumerate(panels, start=1):
        axes = figure.add_subplot(rows, columns, place)
        _draw(axes, lines)
        axes.set_title(fill(title(setups), int(LETTERS * width)), fontsize=9)
    left = len(curves) - len(panels)
    note = f" (the first {len(panels)} of {len(curves)} panels)" if left else ""
    figure.supxlabel(f"environment steps{note}", fontsize=9)
    figure.supylabel("return of finished episodes", fontsize=9)
    # All panels have the same seeds, so that one legend will do.
    handles = figure.axes[0].lines
    if len(handles) <= len(OKABE_ITO):
        look = {"frameon": False, "fontsize": 8, "ncols": 4}
        figure.legend(handles=handles, loc="outside upper center", **look)
    return figure


def _draw(axes: "Axes", lines: Sequence[Line]) -> None:
    few = len(lines) <= len(OKABE_ITO)
    for i, line in enumerate(lines):
        axes.plot(
            line.steps,
            line.returns,
            label=line.name,
            color=OKABE_ITO[i if few else 0],
            alpha=1.0 if few else 0.5,
            linewidth=1.2,
            marker="." if len(line.steps) == 1 else "",
        )
    axes.set_xlim(left=0)
    axes.locator_params(axis="x", nbins=5)
    axes.xaxis.set_major_formatter(lambda steps, _: short(steps))
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.3)
