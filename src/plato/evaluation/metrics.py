"""The paper's metrics, one number for each episode."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from plato.evaluation.episodes import Tally

EpisodeMetrics: TypeAlias = dict[str, np.ndarray]
"""For each metric, its value in every episode."""


@dataclass(frozen=True)
class Metric:
    """How a metric is called and read."""

    label: str
    higher_is_better: bool | None
    """None where neither is: a count of what happened."""


METRICS = {
    "return": Metric("return", True),
    "reward_per_fight": Metric("reward per fight", True),
    "noop_percent": Metric("NOOP %", False),
    "burnouts": Metric("burnouts", False),
    "putouts": Metric("putouts", True),
    "zero_suppressant": Metric("ran dry", None),
    "new_fires": Metric("new fires", None),
}


def shown(results: Sequence[EpisodeMetrics]) -> dict[str, Metric]:
    """What a table of some results shows: what all of them have, in one order."""
    common = [name for name in results[0] if all(name in row for row in results)]
    known = {name: metric for name, metric in METRICS.items() if name in common}
    return known | {
        name: Metric(name.replace("_", " "), None)
        for name in common
        if name not in METRICS
    }


def episode_metrics(tally: Tally) -> EpisodeMetrics:
    """Metrics of stacked episodes."""
    team_return = np.asarray(tally.team_return, np.float64)
    decisions = np.asarray(tally.decisions, np.float64)
    noops = np.asarray(tally.noops, np.float64)
    fights = decisions - noops
    return {
        "return": team_return,
        # Over at least one fight, so that a policy that never fights has a number.
        "reward_per_fight": team_return / np.maximum(fights, 1),
        "noop_percent": 100 * noops / np.maximum(decisions, 1),
        **{k: np.asarray(v, np.float64) for k, v in tally.events.items()},
    }


def mean_and_std(values: np.ndarray) -> tuple[float, float]:
    """Mean and sample standard deviation (0 for a single episode)."""
    spread = values.std(ddof=1) if len(values) > 1 else 0.0
    return float(values.mean()), float(spread)
