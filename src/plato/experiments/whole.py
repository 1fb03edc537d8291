"""What a file of a store must hold, so that whoever reads it finds what they need."""

import json
import math
from collections.abc import Iterable
from typing import Any

from plato.evaluation.metrics import METRICS
from plato.experiments.cells import Cell, fingerprint_of

NEEDED = ("format", "fingerprint", "cell", "episodes", "code", "environment")
"""Without these it is no result of any version."""


def decoded(text: bytes) -> dict[str, Any]:
    """A result as it was written; what JSON knows no word for is none."""
    data = json.loads(text, parse_constant=_refuse)
    if not isinstance(data, dict) or any(name not in data for name in NEEDED):
        raise ValueError("fields are missing")
    return data


def check_whole(data: dict[str, Any], cell: Cell | None) -> None:
    """Refuses what lacks an episode or whatever else a report shows, and what is of
    another cell than the one given."""
    try:
        _check_cell(data, cell)
        _check_making(data)
        policies = _check_training(data) if data["cell"]["trained_on"] else 1
        _check_episodes(data, policies)
    except (AttributeError, KeyError, TypeError, OverflowError) as error:
        raise ValueError("it is not made as results are") from error


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a number")


def _check_cell(data: dict[str, Any], cell: Cell | None) -> None:
    if fingerprint_of(data["cell"]) != data["fingerprint"]:
        raise ValueError("what it says of its cell is not what it was")
    if cell is not None and data["fingerprint"] != cell.fingerprint:
        raise ValueError("it is of another cell")


def _check_making(data: dict[str, Any]) -> None:
    """What made it, on what, in what time."""
    code, place = data["code"], data["environment"]
    for word in (code["plato"], code["digest"], place["jax"], place["device"]):
        if not isinstance(word, str):
            raise ValueError(f"{word!r} is no word")
    _check_numbers(data["seconds"].values())
    data.get("setups", {}).items()  # the first results have none


def _check_training(data: dict[str, Any]) -> int:
    """How many policies were chosen, if what their training was is there, too."""
    curve, chosen = data["curve"], data["chosen"]
    _check_numbers([data["steps"], *chosen])
    _check_numbers(curve["steps"])
    _check_numbers(curve["return"])
    if len(curve["steps"]) != len(curve["return"]) or not chosen:
        raise ValueError("parts of its training are missing")
    return len(chosen)


def _check_episodes(data: dict[str, Any], policies: int) -> None:
    first, last = data["cell"]["protocol"]["seeds"]
    for setup in data["cell"]["plays"]:
        metrics = data["episodes"][setup]
        for name in dict.fromkeys((*METRICS, *metrics)):
            lengths = [len(row) for row in metrics[name]]
            if lengths != [last + 1 - first] * policies:
                raise ValueError(f"episodes on {setup} are missing")
            for row in metrics[name]:
                _check_numbers(row)


def _check_numbers(values: Iterable[Any]) -> None:
    # A sum is as fast as it gets: it is finite only if all of them are, and there is
    # none of what is no number.
    if not math.isfinite(sum(values)):
        raise ValueError("some number is not finite")
