"""Who is compared: methods with their trainings, and policies as they are."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from plato.domains.setups import Setup, load_setup, setup_name
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
    digests: tuple[str, ...] = ()
    """Of its setups as they were then; none where that was not noted."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the setups it was trained on."""
        return tuple(setup_name(setup) for setup in self.setups)

    def was_on(self, setup: Setup) -> bool:
        """Whether it was trained on this very game, not just on one of its name."""
        if not self.digests:
            return setup.name in self.names
        return (setup.name, setup.digest) in zip(self.names, self.digests, strict=True)


@dataclass(frozen=True)
class Contestant:
    """A row of a table: a method, known by its trainings, or one given policy."""

    name: str
    trainings: tuple[Training, ...] = ()
    policy: str | Policy[Any] | None = None
    """The given policy, or its name (see `named_policy`)."""

    def trainings_for(self, setup: Setup) -> tuple[Training, ...]:
        """The trainings that play a setup: those trained on it, else by transfer.

        A method with trainings on several setups transfers those with the same degree
        of openness (S0–S3), as the paper does.
        """
        groups: dict[_Source, list[Training]] = {}
        for training in self.trainings:
            groups.setdefault(_Source.of(training, setup), []).append(training)
        level = level_of(setup.name)
        for fits in (
            lambda source: source.home,
            lambda source: level is not None and level in map(level_of, source.names),
            lambda source: True,
        ):
            found = [source for source in groups if fits(source)]
            if len(found) == 1:
                return tuple(groups[found[0]])
            if found:
                raise PlatoError(
                    f"{self.name}: has trainings on {_listed(found)}, and which of "
                    f"them should play {setup.name} is open; give them different names "
                    f"(NAME=RUN)."
                )
        return ()


class _Source(NamedTuple):
    """What trainings have in common that are of one row."""

    home: bool
    names: tuple[str, ...]
    digests: tuple[str, ...]

    @classmethod
    def of(cls, training: Training, setup: Setup) -> "_Source":
        home = training.was_on(setup)
        # Those of older versions noted no digests, and are at home by name.
        return cls(home, training.names, () if home else training.digests)


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
    methods = [c for c in contestants if c.trainings]
    if not methods:
        raise PlatoError("Name at least one run, or a --setup to compare policies on.")
    first, *others = methods
    common = [
        setup
        for setup in dict.fromkeys(s for t in first.trainings for s in t.setups)
        if all(any(t.was_on(load_setup(setup)) for t in o.trainings) for o in others)
    ]
    if not common:
        each = "; ".join(f"{c.name}: {', '.join(_trained_on(c))}" for c in methods)
        raise PlatoError(
            f"The runs have no setup in common ({each}); name one with --setup."
        )
    return sorted(common, key=setup_name)


TRANSFER = {"2x3": ("3x3", "4x4"), "3x3": ("4x4", "5x5")}
"""The grids to which the paper transfers what was trained on a grid."""


def _trained_on(contestant: Contestant) -> list[str]:
    return list(dict.fromkeys(n for t in contestant.trainings for n in t.names))


def transfer_setups(contestants: Sequence[Contestant]) -> list[str]:
    """The paper's transfer setups for what was trained, level by level."""
    trained = dict.fromkeys(n for c in contestants for n in _trained_on(c))
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


def _listed(groups: Sequence[_Source]) -> str:
    return ", ".join("+".join(source.names) for source in groups)
