"""Who is compared: methods with their trainings, and policies as they are."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plato.domains.setups import setup_name
from plato.errors import PlatoError
from plato.policies.policy import Policy

_LEVEL = re.compile(r"-(S\d+)(?=-|$)")
_GRID = re.compile(r"-(\d+x\d+)(?=-|$)")


@dataclass(frozen=True)
class Checkpoint:
    """A policy kept along a training."""

    update: int
    steps: int
    """Environment steps its training had taken."""
    path: Path


@dataclass(frozen=True)
class Training:
    """One independent training, finished."""

    setups: tuple[str, ...]
    """The names or .toml files of what it was trained on."""
    seed: int
    updates: int
    checkpoints: tuple[Checkpoint, ...]
    where: Path

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the setups it was trained on."""
        return tuple(setup_name(setup) for setup in self.setups)


@dataclass(frozen=True)
class Contestant:
    """A row of a table: a method, known by its trainings, or one given policy."""

    name: str
    trainings: tuple[Training, ...] = ()
    policy: str | Policy[Any] | None = None
    """The given policy, or its name (see `named_policy`)."""

    def trainings_for(self, setup: str) -> tuple[Training, ...]:
        """The trainings that play a setup: those trained on it, else by transfer.

        A method with trainings on several setups transfers those with the same degree
        of openness (S0–S3), as the paper does.
        """
        groups: dict[tuple[str, ...], list[Training]] = {}
        for training in self.trainings:
            groups.setdefault(training.names, []).append(training)
        level = level_of(setup)
        for fits in (
            lambda names: setup in names,
            lambda names: level is not None and level in map(level_of, names),
            lambda names: True,
        ):
            found = [names for names in groups if fits(names)]
            if len(found) == 1:
                return tuple(groups[found[0]])
            if found:
                raise PlatoError(
                    f"{self.name}: has trainings on {_listed(found)}, and which of "
                    f"them should play {setup} is open; give them different names "
                    f"(NAME=RUN)."
                )
        return ()


def level_of(name: str) -> str | None:
    """The degree of openness in a setup's name (S0–S3), if it has one."""
    found = _LEVEL.search(name)
    return found[1] if found else None


def grid_of(name: str) -> str | None:
    """The grid in a setup's name (3x3), if it has one."""
    found = _GRID.search(name)
    return found[1] if found else None


def common_setups(contestants: Sequence[Contestant]) -> list[str]:
    """What all methods were trained on: where they can be compared without transfer."""
    trained = {
        c.name: {setup_name(s): s for t in c.trainings for s in t.setups}
        for c in contestants
        if c.trainings
    }
    if not trained:
        raise PlatoError("Name at least one run, or a --setup to compare policies on.")
    first, *others = trained.values()
    common = [s for name, s in first.items() if all(name in o for o in others)]
    if not common:
        each = "; ".join(f"{name}: {', '.join(on)}" for name, on in trained.items())
        raise PlatoError(
            f"The runs have no setup in common ({each}); name one with --setup."
        )
    return sorted(common, key=setup_name)


TRANSFER = {"2x3": ("3x3", "4x4"), "3x3": ("4x4", "5x5")}
"""The grids to which the paper transfers what was trained on a grid."""


def transfer_setups(contestants: Sequence[Contestant]) -> list[str]:
    """The paper's transfer setups for what was trained, level by level."""
    trained = dict.fromkeys(
        n for c in contestants for t in c.trainings for n in t.names
    )
    found = [
        f"wildfire-{target}-{level_of(name)}-transfer"
        for name in trained
        for target in TRANSFER.get(grid_of(name) or "", ())
        if level_of(name)
    ]
    if not found:
        raise PlatoError(
            f"The paper transfers from the grids {', '.join(TRANSFER)}, on which no "
            f"run was trained; name the setups with --setup."
        )
    return sorted(dict.fromkeys(found))


def _listed(groups: Sequence[tuple[str, ...]]) -> str:
    return ", ".join("+".join(names) for names in groups)
