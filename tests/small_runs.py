"""Real trainings, as small as they can be."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from plato.learners.config import MappoConfig, TrainConfig
from plato.policies.config import ActorConfig
from plato.runs.folder import RunFolder
from plato.runs.train import train

SMALL = TrainConfig(
    setups=("wildfire-2x3-S3",),
    seeds=2,
    checkpoints=6,
    networks=ActorConfig(hidden=8),
    learning=MappoConfig(games=4, steps=10, updates=6, epochs=2, minibatches=2),
)


def trained(path: Path, **changes: Any) -> Path:
    """The folder of a finished run."""
    folder = RunFolder.create(path, replace(SMALL, **changes))
    assert train(folder)
    return path
