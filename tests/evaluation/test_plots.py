"""Plots: which are drawn, their size, and what is said without Matplotlib."""

import sys

import numpy as np
import pytest

from plato.domains.setups import load_setup
from plato.errors import PlatoError
from plato.evaluation.comparison import compare
from plato.evaluation.contestants import Contestant
from plato.evaluation.plots import WIDTH, figures
from plato.evaluation.protocols import Examiner, protocol
from plato.runs.trainings import contestants_of

HOME = load_setup("wildfire-2x3-S3")


def compared(additive, name):
    contestants = contestants_of([str(additive)])
    contestants.append(Contestant("noop", policy="noop"))
    examiner = Examiner(protocol(name, episodes=5))
    comparison = compare(contestants, [HOME], examiner, optimum={HOME.name: 80.0})
    curves = {(c.name, HOME.name): examiner.curves(c, HOME) for c in contestants}
    return comparison, curves


def test_all_plots_of_the_field(additive):
    drawn = figures(*compared(additive, "field"))
    assert list(drawn) == [
        "learning-curve-wildfire-2x3-S3",
        "performance-profile",
        "probability-of-improvement",
        "return-against-optimum",
    ]
    for figure in drawn.values():
        assert figure.get_size_inches()[0] == WIDTH == 3.3
        figure.draw_without_rendering()
    (axes,) = drawn["learning-curve-wildfire-2x3-S3"].axes
    steps = np.asarray(axes.lines[0].get_xdata())
    assert steps.tolist() == [40, 80, 120, 160, 200, 240]


def test_the_papers_protocol_has_no_aggregates_to_plot(additive):
    assert list(figures(*compared(additive, "paper"))) == [
        "learning-curve-wildfire-2x3-S3",
        "return-against-optimum",
    ]


def test_without_matplotlib_the_extra_is_named(additive, monkeypatch):
    found = compared(additive, "field")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(PlatoError, match=r"plato-marl\[plots\]"):
        figures(*found)
