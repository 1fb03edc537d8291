"""What is searched for each method. Imports nothing heavy: the command line reads it.

Learning rates, widths and batch sizes are the paper's spaces. It says that entropy
weights, gradient clipping and exploration schedules bracket each method's defaults, but
not how far: here about one factor of three to ten to either side.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from plato.errors import PlatoError
from plato.learners.baseline_configs import DicgLearning
from plato.learners.config import (
    METHODS,
    MappoConfig,
    MethodName,
    TrainConfig,
    TrainSettings,
)


@dataclass(frozen=True)
class Range:
    """Numbers between two ends; trials that differ only in these share a program."""

    low: float
    high: float
    log: bool = False


@dataclass(frozen=True)
class Choice:
    """One of some sizes; a program is compiled for each."""

    sizes: tuple[int, ...]


Space = Mapping[str, Range | Choice]
"""By setting; `batch` is the method's unit of data, in steps."""

RATE = Range(1e-5, 1e-2, log=True)
WIDTHS = Choice((64, 128, 256))

SPACES: dict[MethodName, Space] = {
    "plato": {
        "actor_rate": RATE,
        "critic_rate": RATE,
        "hidden": WIDTHS,
        "batch": Choice((512, 1024, 2048, 4096)),
        "entropy": Range(1e-3, 0.3, log=True),
        "clip": Range(0.1, 0.3),
        "max_norm": Range(0.3, 3.0, log=True),
    },
    "dicg": {
        "rate": RATE,
        "hidden": WIDTHS,
        "batch": Choice((512, 1024, 2048)),
        "entropy": Range(2e-3, 0.2, log=True),
        "clip": Range(0.1, 0.3),
        "max_norm": Range(3.0, 30.0, log=True),
    },
    "dgn": {
        "rate": Range(1e-4, 1e-2, log=True),
        "hidden": WIDTHS,
        "batch": Choice((256, 512, 1024, 2048)),
        "epsilon": Range(0.6, 1.0),
        "epsilon_end": Range(0.005, 0.1, log=True),
        "epsilon_fall": Range(0.2, 1.0),
        "max_norm": Range(3.0, 30.0, log=True),
    },
    "mohito": {
        "actor_rate": Range(1e-5, 1e-3, log=True),
        "critic_rate": Range(1e-5, 1e-3, log=True),
        "hidden": Choice((32, 64, 128)),
        "batch": Choice((16, 32, 64, 128)),
        "epsilon_life": Range(6e3, 6e5, log=True),
        "max_norm": Range(0.3, 3.0, log=True),
    },
}

STEPS = 64
"""Of a game between two updates of PLATO: all its batch sizes are multiples."""


def defaults(method: MethodName) -> TrainSettings:
    """What trials of a method have in common, but for what is searched."""
    halves = METHODS[method]
    return TrainSettings(networks=halves.networks(), learning=halves.learning())


def configuration(
    base: TrainSettings,
    setup: str,
    found: Mapping[str, float],
    *,
    steps: int,
    seed: int,
    trainings: int = 1,
) -> TrainConfig:
    """The trainings that a trial stands for: its settings, and a budget of steps."""
    learning = base.learning
    values: dict[str, Any] = dict(found)
    networks = replace(base.networks, hidden=int(values.pop("hidden")))
    batch = int(values.pop("batch"))
    if isinstance(learning, MappoConfig):
        values |= {"games": batch // STEPS, "steps": STEPS, "minibatches": 4}
    elif isinstance(learning, DicgLearning):
        # As many whole episodes as fill it and divide into minibatches.
        parts = learning.minibatches
        values["games"] = math.ceil(batch / learning.steps / parts) * parts
    else:
        values["batch"] = batch
    learning = replace(learning, **values)
    updates = steps // (learning.games * learning.steps)
    if updates < 1:
        raise PlatoError(
            f"{steps} steps are less than one update of {base.method} "
            f"({learning.games} games × {learning.steps}); ask for more episodes."
        )
    return TrainConfig(
        setups=(setup,),
        seed=seed,
        seeds=trainings,
        checkpoints=1,
        networks=networks,
        learning=replace(learning, updates=updates),
    )
