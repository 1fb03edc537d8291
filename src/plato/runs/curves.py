"""Learning curves as SVG, drawn with nothing but text; a page's style colours them."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import floor, log10

import numpy as np

from plato.runs.lines import Line

WIDTH, HEIGHT = 640, 260
"""Of the drawing; it scales with the page."""
LEFT, RIGHT, TOP, BOTTOM = 56, 14, 14, 44
"""Room for the numbers and names of the axes."""
MOST_POINTS = 240
"""Points of a line; more of them are averaged."""
COLOURS = 6
"""Series that the shared style has colours for; more are drawn in one."""


def curve(lines: Sequence[Line], title: str) -> str:
    """The lines in one drawing; empty where no line has a point."""
    lines = [_thinned(line) for line in lines if line.steps]
    if not lines:
        return ""
    every_x = [x for line in lines for x in line.steps]
    every_y = [y for line in lines for y in line.returns]
    across = _Axis.over(0.0, max(every_x), LEFT, WIDTH - RIGHT)
    up = _Axis.over(min(every_y), max(every_y), HEIGHT - BOTTOM, TOP)
    parts = [_grid(across, up)]
    for number, line in enumerate(lines):
        points = " ".join(
            f"{across.at(x):.1f},{up.at(y):.1f}"
            for x, y in zip(line.steps, line.returns, strict=True)
        )
        look = f"series-{number + 1}" if len(lines) <= COLOURS else "many"
        mark = (
            f'<polyline class="{look}" points="{points}"/>'
            if len(line.steps) > 1
            else f'<circle class="{look}" cx="{points.split(",")[0]}" '
            f'cy="{points.split(",")[1]}" r="3"/>'
        )
        parts.append(f"<g><title>{escape(line.name)}</title>{mark}</g>")
    return (
        f'<svg class="curve" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}">{"".join(parts)}</svg>'
    )


def legend(lines: Sequence[Line]) -> str:
    """Which colour is which line, where there are several and colours for them."""
    names = [line.name for line in lines if line.steps]
    if not 1 < len(names) <= COLOURS:
        return ""
    items = "".join(
        f'<li><span class="key series-{number + 1}"></span>{escape(name)}</li>'
        for number, name in enumerate(names)
    )
    return f"<ul class=legend>{items}</ul>"


@dataclass(frozen=True)
class _Axis:
    """Numbers along one side of the drawing."""

    low: float
    high: float
    begin: float
    end: float
    ticks: tuple[float, ...]

    @classmethod
    def over(cls, low: float, high: float, begin: float, end: float) -> "_Axis":
        """From the lowest number to the highest, with round ones in between."""
        if low == high:
            low, high = low - (abs(low) or 1.0), high + (abs(high) or 1.0)
        step = _round_step(high - low)
        first, last = -floor(-low / step), floor(high / step)
        ticks = tuple(step * i for i in range(first, last + 1))
        return cls(low, high, begin, end, ticks)

    def at(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)


def _round_step(span: float) -> float:
    """1, 2 or 5 times a power of ten, such that about five of them make the span."""
    size = 10 ** floor(log10(span / 5))
    return next((size * k for k in (1, 2, 5) if span / (size * k) <= 6), 10 * size)


def _grid(across: _Axis, up: _Axis) -> str:
    x0, x1 = across.begin, across.end
    parts = []
    for tick in up.ticks:
        y = up.at(tick)
        parts.append(
            f'<line class="rule" x1="{x0}" x2="{x1}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{x0 - 8}" y="{y + 4:.1f}" text-anchor="end">'
            f"{short(tick)}</text>"
        )
    foot = up.begin
    for tick in across.ticks:
        x = across.at(tick)
        anchor = "end" if x > x1 - RIGHT else "middle"
        parts.append(
            f'<text x="{x:.1f}" y="{foot + 18}" text-anchor="{anchor}">'
            f"{short(tick)}</text>"
        )
    middle = (x0 + x1) / 2
    parts.append(
        f'<text x="{middle}" y="{HEIGHT - 4}" text-anchor="middle">environment steps'
        f"</text>"
    )
    return "".join(parts)


def short(number: float) -> str:
    """1.2 M, 40 k, 0.5: as much as fits beside an axis."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(number) >= size:
            return f"{number / size:.4g}{unit}".replace("-", "−")
    return f"{number:z.4g}".replace("-", "−")


def _thinned(line: Line) -> Line:
    count = len(line.steps)
    if count <= MOST_POINTS:
        return line
    edges = np.linspace(0, count, MOST_POINTS + 1).astype(int)
    steps, returns = np.asarray(line.steps), np.asarray(line.returns)
    bins = [slice(a, b) for a, b in pairwise(edges)]
    return Line(
        line.name,
        [float(steps[one].mean()) for one in bins],
        [float(returns[one].mean()) for one in bins],
    )
