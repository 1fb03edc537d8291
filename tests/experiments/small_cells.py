"""Cells that take seconds."""

from dataclasses import replace

from plato.evaluation.protocols import protocol
from plato.experiments.cells import Cell, Row
from plato.learners.config import MappoConfig, TrainSettings
from plato.policies.config import ActorConfig

HOME = "wildfire-2x3-S3"
AWAY = "wildfire-3x3-S3-transfer"
FIELD = replace(protocol("field", episodes=6), choosing=range(10**6, 10**6 + 6))
PAPER = protocol("paper", episodes=6)
SETTINGS = TrainSettings(
    checkpoints=6,
    networks=ActorConfig(hidden=8),
    learning=MappoConfig(games=4, steps=10, updates=6, epochs=1, minibatches=2),
)
PLATO = Row("PLATO", SETTINGS)
RANDOM = Row("Random", policy="random")


def trained(seed: int = 42, row: Row = PLATO, on: str = HOME, by=FIELD) -> Cell:
    return Cell(row, by, (on,), seed, (on, AWAY) if on == HOME else (on,))


def given(row: Row = RANDOM, on: str = HOME, by=FIELD) -> Cell:
    return Cell(row, by, (), 0, (on,))
