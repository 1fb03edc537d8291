"""Cells: the units of work of a reproduction.

A cell is one training with all that its policies play afterwards, or one given policy
on one setup. What a cell is, down to the last setting, is its fingerprint.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from plato.domains.setups import load_setup
from plato.evaluation.protocols import Protocol
from plato.files import file_digest
from plato.learners.advice import adviser_files
from plato.learners.baseline_configs import DgnLearning, MohitoLearning
from plato.learners.config import RunName, TrainConfig, TrainSettings
from plato.learners.predecessors import predecessor_files
from plato.policies.checkpoint import trained_file
from plato.policies.pretrained import is_pretrained

LATER = {
    "maps": "own",
    "new_maps": 0,
    "advisers": [],
    "advice": 1.0,
    "advised": 0.5,
    "begin_with": "",
    "critic_first": 0.0,
    "choice": "hard",
}
"""Settings that came after the first results, as they were before: a cell does not
mention them where they are still so, and its results stay valid."""


@dataclass(frozen=True)
class Row:
    """A row of tables: a method to be trained, or a policy that is given."""

    name: str
    settings: TrainSettings | None = None
    """How it is trained; its seeds, noise and fleet are the cells' affair."""
    policy: str | None = None
    """Else what plays (see `named_policy`)."""


@dataclass(frozen=True)
class Cell:
    """One training and all that it plays; or a given policy on what it plays."""

    row: Row
    protocol: Protocol
    trained_on: tuple[str, ...]
    """Empty for a given policy."""
    seed: int
    """Of the training; 0 for a given policy."""
    plays: tuple[str, ...]

    def config(self) -> TrainConfig:
        """The training of this cell alone."""
        assert self.row.settings is not None
        settings = self.row.settings
        return TrainConfig(
            **vars(settings)
            | {
                "setups": self.trained_on,
                "fleet": False,
                "seeds": 1,
                "seed": self.seed,
                # The same games as in a training of several seeds from the first on.
                "game_seed": settings.game_seed + self.seed - settings.seed,
                "noise": self.protocol.noise,
            }
        )

    @property
    def setups(self) -> tuple[str, ...]:
        """All that it trains on or plays."""
        return tuple(dict.fromkeys((*self.trained_on, *self.plays)))

    @property
    def steps(self) -> int:
        """Environment steps of the training."""
        if self.row.settings is None:
            return 0
        learning = self.row.settings.learning
        return learning.played(learning.updates)

    def to_mapping(self) -> dict[str, Any]:
        """All that the results depend on, code and machine apart."""
        protocol = asdict(self.protocol)
        for name in ("seeds", "choosing"):
            span: range = protocol[name]
            protocol[name] = [span.start, span.stop - 1]
        return {
            "row": self.row.name,
            "policy": self.row.policy,
            "trained_on": list(self.trained_on),
            "seed": self.seed,
            "plays": list(self.plays),
            "protocol": protocol,
        } | self._training()

    def _training(self) -> dict[str, Any]:
        if not self.trained_on:
            return {"training": None} | self._given()
        config = self.config()
        return {"training": _as_before(config.to_mapping())} | learned_from(config)

    def _given(self) -> dict[str, str]:
        """What a policy that comes with PLATO is beyond its name: with another version
        there may come another."""
        policy = self.row.policy
        if policy is None or not is_pretrained(policy):
            return {}
        return {"file": file_digest(trained_file(policy, load_setup(self.plays[0])))}

    @property
    def fingerprint(self) -> str:
        """The same for cells that must give the same results."""
        return fingerprint_of(self.to_mapping())

    @property
    def key(self) -> str:
        """What its files are called."""
        if self.trained_on:
            where = str(RunName(self.trained_on, self.seed))
            if len(self.trained_on) > 1:
                where = f"{len(self.trained_on)}-setups-seed{self.seed}"
        else:
            where = "+".join(self.plays)
        row = re.sub(r"[^a-z0-9+]+", "-", self.row.name.lower()).strip("-")
        return f"{self.protocol.name}/{row}/{where}-{self.fingerprint}"

    def __str__(self) -> str:
        where = ", ".join(self.trained_on or self.plays)
        if len(self.trained_on) > 1:
            where = f"{len(self.trained_on)} setups"
        seed = f", seed {self.seed}" if self.trained_on else ""
        return f"{self.row.name} on {where}{seed} ({self.protocol.name} protocol)"


def _as_before(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings without those that came later and are still as it was before them."""
    return {
        name: _as_before(value) if isinstance(value, Mapping) else value
        for name, value in settings.items()
        if name not in LATER or value != LATER[name]
    }


def fingerprint_of(cell: Mapping[str, Any]) -> str:
    """Of a cell as a mapping; what rows are called does not matter."""
    text = json.dumps({**cell, "row": None}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def setup_digests(names: Iterable[str]) -> dict[str, str]:
    """What setups are, beyond their names."""
    return {name: load_setup(name).digest for name in names}


def learned_from(config: TrainConfig) -> dict[str, dict[str, str]]:
    """What the trained policies are that a training asks or begins with, beyond their
    names; empty where there are none, as in the first results."""
    if not config.advisers and not config.begin_with:
        return {}
    files: dict[str, Mapping[str, Path]] = {}
    setups = {name: load_setup(name) for name in config.setups}
    if config.advisers:
        files["advisers"] = adviser_files(config.advisers, setups)
    if config.begin_with:
        files["predecessors"] = predecessor_files(config, setups)
    return {
        kind: {name: file_digest(path) for name, path in own.items()}
        for kind, own in files.items()
    }


def shortened(settings: TrainSettings, part: float) -> TrainSettings:
    """The same training with a part of its updates: for trying things out."""
    learning = settings.learning
    changed = {"updates": max(round(part * learning.updates), 6)}
    if isinstance(learning, DgnLearning | MohitoLearning):
        changed["warm_up"] = round(part * learning.warm_up)
    return replace(settings, learning=replace(learning, **changed))
