"""Plots of comparisons, for a column of a paper (3.3 inches). Extra: plots."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from plato.errors import PlatoError
from plato.evaluation.aggregates import Estimate, Sample, estimate, mean
from plato.evaluation.comparison import Comparison, Summary
from plato.evaluation.contestants import grid_of, level_of
from plato.evaluation.metrics import METRICS
from plato.evaluation.protocols import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 3.3, 2.3
"""Inches."""
OKABE_ITO = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7"),
    *("#E69F00", "#56B4E9", "#000000", "#F0E442"),
)
"""Colours that can be told apart with any colour vision (Okabe and Ito, 2008)."""
DASHES = ("-", "--", "-.", ":")
"""So that lines can be told apart without colours too, and beyond eight of them."""


def figures(
    comparison: Comparison, curves: Mapping[tuple[str, str], Sequence[Curve]]
) -> "dict[str, Figure]":
    """All plots that a comparison allows, by the name of their file."""
    drawn = {}
    metric = comparison.metrics[0]
    if comparison.trained:
        for setup in comparison.setups:
            of = {name: curves[name, setup] for name in comparison.contestants}
            drawn[f"learning-curve-{setup}"] = learning_curves(of, setup, metric)
    if metric in comparison.summaries:
        summary = comparison.summaries[metric]
        drawn["performance-profile"] = performance_profiles(summary, metric)
        if len(comparison.contestants) > 1:
            drawn["probability-of-improvement"] = improvements(summary, metric)
    if metric == "return" and comparison.optimum:
        drawn["return-against-optimum"] = against_optimum(comparison)
    return drawn


def learning_curves(
    curves: Mapping[str, Sequence[Curve]], setup: str, metric: str
) -> "Figure":
    """Mean over trainings at every checkpoint, with its 95 % bootstrap interval."""
    figure, axes = _figure()
    for i, (name, trainings) in enumerate(curves.items()):
        look = style(i)
        if trainings[0].seed is None:
            level = float(trainings[0].metrics[metric].mean())
            axes.axhline(level, label=name, **look | {"linewidth": 1.0})
            continue
        # Trainings of one method may have kept checkpoints at different steps.
        shared = sorted(set.intersection(*(set(curve.steps) for curve in trainings)))
        points = [_point(trainings, metric, step) for step in shared]
        axes.plot(shared, [p.value for p in points], label=name, **look)
        if len(trainings) > 1:
            low, high = [p.low for p in points], [p.high for p in points]
            axes.fill_between(shared, low, high, color=look["color"], alpha=0.2, lw=0)
    axes.set_xlabel("environment steps")
    axes.set_ylabel(METRICS[metric].label)
    axes.set_title(setup, fontsize=8)
    axes.ticklabel_format(axis="x", style="sci", scilimits=(0, 4), useMathText=True)
    axes.set_xlim(left=0)
    _legend(figure, len(curves))
    return figure


def performance_profiles(summary: Summary, metric: str) -> "Figure":
    """The share of trainings that score above each threshold."""
    figure, axes = _figure()
    for i, (name, profile) in enumerate(summary.profiles.items()):
        look = style(i)
        axes.step(profile.thresholds, profile.value, label=name, where="post", **look)
        axes.fill_between(
            profile.thresholds,
            profile.low,
            profile.high,
            step="post",
            color=look["color"],
            alpha=0.2,
            lw=0,
        )
    axes.set_xlabel(f"{METRICS[metric].label}, normalised: τ")
    axes.set_ylabel("share of trainings > τ")
    axes.set_xlim(0, 1)
    axes.set_ylim(-0.02, 1.02)
    _legend(figure, len(summary.profiles))
    return figure


def improvements(summary: Summary, metric: str) -> "Figure":
    """The chance that one beats another, for each pair (once)."""
    pairs = {}
    for (one, other), chance in summary.improvement.items():
        if (other, one) not in pairs:
            pairs[one, other] = chance
    figure, axes = _figure(height=0.75 + 0.24 * len(pairs))
    for y, chance in enumerate(reversed(pairs.values())):
        ends = [chance.low, chance.high]
        axes.plot(ends, [y, y], color=OKABE_ITO[5], linewidth=5, solid_capstyle="butt")
        axes.plot(chance.value, y, "|", color=OKABE_ITO[6], markersize=9)
    axes.axvline(0.5, color="0.4", linewidth=0.8, linestyle=":")
    labels = [f"{one} > {other}" for one, other in reversed(pairs)]
    axes.set_yticks(range(len(pairs)), labels)
    axes.grid(visible=False, axis="y")
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(-0.6, len(pairs) - 0.4)
    axes.set_xlabel(f"P(X > Y), {METRICS[metric].label}")
    return figure


def against_optimum(comparison: Comparison) -> "Figure":
    """The mean return on each setup as a percentage of the best possible one."""
    setups = [s for s in comparison.setups if s in comparison.optimum]
    names = comparison.contestants
    figure, axes = _figure()
    width = 0.8 / len(names)
    for i, name in enumerate(names):
        cells = [comparison.cells[name, setup, "return"] for setup in setups]
        best = np.asarray([comparison.optimum[setup] for setup in setups])
        height = 100 * np.asarray([cell.mean for cell in cells]) / best
        x = np.arange(len(setups)) + (i - (len(names) - 1) / 2) * width
        axes.bar(x, height, 0.92 * width, label=name, color=style(i)["color"])
        for at, cell, top in zip(x, cells, best, strict=True):
            if cell.interval is not None:
                ends = [100 * cell.interval.low / top, 100 * cell.interval.high / top]
                axes.plot([at, at], ends, color="0.2", linewidth=0.9)
    axes.axhline(100, color="0.2", linewidth=0.8, linestyle="--")
    axes.axhline(0, color="0.2", linewidth=0.5)
    labels = [f"{grid_of(s) or s} {level_of(s) or ''}".strip() for s in setups]
    crowded = len(setups) > 4
    axes.set_xticks(
        range(len(setups)),
        [label.replace("x", "×") for label in labels],
        rotation=45 if crowded else 0,
        ha="right" if crowded else "center",
    )
    axes.set_ylabel("% of the optimal return")
    axes.grid(visible=False, axis="x")
    _legend(figure, len(names))
    return figure


def _point(trainings: Sequence[Curve], metric: str, step: int) -> Estimate:
    scores = [c.metrics[metric][c.steps.index(step)].mean() for c in trainings]
    return estimate(Sample.of_trainings([np.asarray(scores)]), mean)


def style(i: int) -> dict[str, Any]:
    """How the line of the i-th row looks."""
    return {
        "color": OKABE_ITO[i % len(OKABE_ITO)],
        "linestyle": DASHES[(i + i // len(OKABE_ITO)) % len(DASHES)],
        "linewidth": 1.4,
    }


def _figure(height: float = HEIGHT) -> "tuple[Figure, Axes]":
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise PlatoError(
            "Plots need Matplotlib: pip install 'plato-marl[plots]'."
        ) from None
    look: Any = {
        "font.size": 8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.alpha": 0.3,
        "grid.linewidth": 0.5,
        "legend.frameon": False,
        "legend.fontsize": 7,
    }
    with rc_context(look):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        return figure, figure.add_subplot()


def _legend(figure: "Figure", entries: int) -> None:
    """Above the axes, where it hides no line, in rows of at most three."""
    rows = -(-entries // 3)
    figure.legend(
        loc="outside upper center",
        ncols=-(-entries // rows),
        fontsize=7,
        frameon=False,
        handlelength=2.2,
        columnspacing=1.0,
    )
