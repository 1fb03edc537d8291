"""Predecessors: trained policies that others begin with, in place of new weights."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from plato.configuration import to_mapping
from plato.domains.setups import Setup
from plato.errors import PlatoError
from plato.game import features_of
from plato.learners.config import Networks, TrainConfig
from plato.policies.checkpoint import (
    load_actor,
    networks_of,
    refuse_another_game,
    trained_file,
)
from plato.policies.pointer import PointerActor


def predecessor_files(
    config: TrainConfig, setups: Mapping[str, Setup]
) -> dict[str, Path]:
    """Which file each training of a configuration begins with."""
    return {
        str(run): predecessor_file(
            config.begin_with, [setups[name] for name in run.setups]
        )
        for run in config.runs
    }


def predecessor_file(name: str, setups: Sequence[Setup]) -> Path:
    """Who has that name, for a training on these setups."""
    return trained_file(name, setups[0] if len(setups) == 1 else None)


def load_predecessor(
    name: str, networks: Networks, setups: Sequence[Setup]
) -> PointerActor:
    """The actor that a training of such networks, on such setups, begins with."""
    path = predecessor_file(name, setups)
    actor = load_actor(path)
    refuse_another_game(name, path, features_of(setups[0].game()))
    own, wanted = networks_of(path), to_mapping(networks)
    if own != networks:
        others = [f"{k}={v!r}" for k, v in to_mapping(own).items() if v != wanted[k]]
        raise PlatoError(
            f"begin_with: {name} has other networks than this training; choose "
            f"{', '.join(others)}."
        )
    return actor
