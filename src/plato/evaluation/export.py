"""Comparisons as files for other programs: CSV, JSON, and marl-eval's JSON."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import plato
from plato.errors import PlatoError
from plato.evaluation.comparison import Comparison, Summary
from plato.evaluation.protocols import Curve, Protocol, Result

ENVIRONMENT = "wildfire"

FIELDS = (
    *("protocol", "noise", "actions", "first_seed", "last_seed"),
    *("contestant", "setup", "trained_on", "zero_shot", "trainings", "episodes"),
    *("metric", "mean", "std", "low", "high", "bold", "test", "p"),
)


def to_csv(comparison: Comparison) -> str:
    """A line for each contestant, setup and metric; empty where there is no number."""
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    protocol = comparison.protocol
    for (name, setup, metric), cell in comparison.cells.items():
        result = comparison.results[name, setup]
        line = {
            "protocol": protocol.name,
            "noise": protocol.noise,
            "actions": protocol.actions,
            "first_seed": protocol.seeds.start,
            "last_seed": protocol.seeds.stop - 1,
            "contestant": name,
            "setup": setup,
            "trained_on": "+".join(result.trained_on),
            "zero_shot": result.zero_shot,
            "trainings": len(result.played) if result.trained_on else 0,
            "episodes": len(result.episodes(metric)),
            "metric": metric,
            "mean": cell.mean,
            "std": cell.std,
            "bold": cell.bold,
        }
        if cell.interval is not None:
            line |= {"low": cell.interval.low, "high": cell.interval.high}
        if cell.test is not None:
            line |= {"test": cell.test.kind, "p": cell.test.p}
        writer.writerow(line)
    return text.getvalue()


def to_json(comparison: Comparison) -> dict[str, Any]:
    """Everything, down to the episodes."""
    return {
        "plato": plato.__version__,
        "protocol": _protocol(comparison.protocol),
        "optimum": dict(comparison.optimum),
        "results": [
            _result(comparison, result) for result in comparison.results.values()
        ],
        "families": [
            {"setup": setup, "metric": metric}
            | {"significant": family.significant}
            | asdict(family)
            for (setup, metric), family in comparison.families.items()
        ],
        "summaries": {
            metric: _summary(summary)
            for metric, summary in comparison.summaries.items()
        },
    }


def to_marl_eval(
    comparison: Comparison, curves: Mapping[tuple[str, str], Sequence[Curve]]
) -> dict[str, Any]:
    """marl-eval's raw data: environment, task, algorithm, run, step, metrics.

    Its tools want the same runs and steps of every algorithm, and names in lower case.
    A run is named by its seed if all methods have the same seeds, else by its number.
    A given policy does not learn: it has the same numbers in every run, at every step.
    """
    runs, steps = _marl_eval_axes(comparison, curves)
    tasks: dict[str, Any] = {}
    for (name, setup), result in comparison.results.items():
        learned = curves[name, setup]
        algorithm = {}
        for i, run in enumerate(runs):
            curve = learned[i if result.trained_on else 0]
            played = result.played[i if result.trained_on else 0]
            algorithm[run] = {
                f"step_{j + 1}": {"step_count": count}
                | {
                    m: curve.metrics[m][j if result.trained_on else 0].tolist()
                    for m in comparison.metrics
                }
                for j, count in enumerate(steps)
            } | {
                "absolute_metrics": {
                    m: played.metrics[m].ravel().tolist() for m in comparison.metrics
                }
            }
        tasks.setdefault(setup.lower(), {})[name] = algorithm
    return {ENVIRONMENT: tasks}


def _marl_eval_axes(
    comparison: Comparison, curves: Mapping[tuple[str, str], Sequence[Curve]]
) -> tuple[list[str], tuple[int, ...]]:
    """The names of the runs and the numbers of steps that all methods share."""
    learned = {key: c for key, c in curves.items() if key[0] in comparison.trained}
    if not learned:
        raise PlatoError("marl-eval's format is for trainings; name at least one run.")
    numbers = {len(c) for c in learned.values()}
    steps = {curve.steps for c in learned.values() for curve in c}
    if len(numbers) > 1 or len(steps) > 1:
        raise PlatoError(
            "marl-eval's format needs the same number of trainings, with checkpoints "
            "after the same numbers of steps, of every method on every setup."
        )
    seeds = {tuple(curve.seed for curve in c) for c in learned.values()}
    if len(seeds) == 1:
        return [f"seed_{seed}" for seed in next(iter(seeds))], next(iter(steps))
    return [f"run_{i + 1}" for i in range(next(iter(numbers)))], next(iter(steps))


def _protocol(protocol: Protocol) -> dict[str, Any]:
    return {
        "name": protocol.name,
        "noise": protocol.noise,
        "actions": protocol.actions,
        "seeds": [protocol.seeds.start, protocol.seeds.stop - 1],
        "checkpoints_chosen_on_seeds": [
            protocol.choosing.start,
            protocol.choosing.stop - 1,
        ],
        "checkpoints_for_each_training": protocol.chosen,
    }


def _result(comparison: Comparison, result: Result) -> dict[str, Any]:
    return {
        "contestant": result.contestant,
        "setup": result.setup,
        "trained_on": list(result.trained_on),
        "zero_shot": result.zero_shot,
        "metrics": {
            metric: asdict(comparison.cells[result.contestant, result.setup, metric])
            for metric in comparison.metrics
        },
        "trainings": [
            {
                "seed": played.seed,
                "checkpoints": list(played.updates),
                "episodes": {m: played.metrics[m].tolist() for m in comparison.metrics},
            }
            for played in result.played
        ],
    }


def _summary(summary: Summary) -> dict[str, Any]:
    return {
        "scales": {setup: asdict(scale) for setup, scale in summary.scales.items()},
        "aggregates": {
            name: {label: asdict(e) for label, e in own.items()}
            for name, own in summary.aggregates.items()
        },
        "improvement": [
            {"of": of, "over": over} | asdict(e)
            for (of, over), e in summary.improvement.items()
        ],
        "profiles": {
            name: {
                key: getattr(profile, key).tolist()
                for key in ("thresholds", "value", "low", "high")
            }
            for name, profile in summary.profiles.items()
        },
    }
