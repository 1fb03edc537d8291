"""The folder of a training run: what it is, how it goes, and where to go on from.

config.toml               everything the run depends on
environment.json          versions and device it ran with
games.json                digests of what it plays: a setup may be a file of one's own
advisers.json             digests of whom it asks, where it does
predecessors.json         digests of what it began with, where that was trained before
metrics/RUN.jsonl         one line for each update
checkpoints/RUN/N.safetensors   the policy after N updates
state.safetensors         all that is needed to go on
SUMMARY.md, summary.html, curve.png   written at the end
"""

import json
import platform
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax

import plato
from plato.configuration import read_toml, to_toml
from plato.domains.setups import Setup
from plato.errors import PlatoError
from plato.files import (
    cannot_write,
    file_digest,
    held,
    read_json,
    write_json,
    write_text,
)
from plato.learners.config import RunName, TrainConfig
from plato.policies.checkpoint import save_policy
from plato.policies.padded import PaddedShape
from plato.policies.policy import Policy
from plato.tensors import read_header, read_tree, write_tree

GAMES = "games.json"
ENVIRONMENT = "environment.json"
STATE = "state.safetensors"
LIBRARIES = ("jax", "jaxlib", "equinox", "optax", "numpy", "scipy")
"""That results may depend on."""


@dataclass(frozen=True)
class RunFolder:
    """Reads and writes the files of one folder."""

    path: Path

    @classmethod
    def create(cls, path: Path, config: TrainConfig) -> "RunFolder":
        """A new folder; one that holds a run already is not touched."""
        if (path / "config.toml").exists():
            raise PlatoError(
                f"{path}: holds a run already; continue it with "
                f"`plato train --resume {path}`, or choose another --out."
            )
        write_json(path / ENVIRONMENT, environment())
        # Last: it is what makes a folder that of a run.
        write_text(path / "config.toml", to_toml(config.to_mapping()))
        return cls(path)

    def config(self) -> TrainConfig:
        """The configuration the run was begun with."""
        path = self.path / "config.toml"
        if not path.exists():
            raise PlatoError(
                f"{self.path}: is not the folder of a run (no config.toml)."
            )
        try:
            return TrainConfig.from_mapping(read_toml(path))
        except PlatoError as error:
            raise PlatoError(f"{path}: {error}") from None

    def environment(self) -> dict[str, Any]:
        """The versions and the device that it was begun with."""
        return read_json(self.path / ENVIRONMENT)

    def another_environment(self) -> dict[str, tuple[Any, Any]]:
        """What has changed since the run was begun, of what results may depend on:
        what it was, and what it is."""
        before, now = self.environment(), environment()
        return {
            name: (before[name], now[name])
            for name in now
            if name in before and before[name] != now[name]
        }

    def same_games(self, setups: Mapping[str, Setup]) -> None:
        """Notes what the run plays; later, refuses to go on with anything else."""
        self._same(
            GAMES, {name: s.digest for name, s in setups.items()}, "is not the game"
        )

    def same_advisers(self, files: Mapping[str, Path]) -> None:
        """The same for whom it asks about each setup."""
        self._same_files("advisers.json", files, "does not have the adviser")

    def same_predecessors(self, files: Mapping[str, Path]) -> None:
        """The same for what each training begins with."""
        self._same_files("predecessors.json", files, "has not the predecessor")

    def _same_files(self, noted: str, files: Mapping[str, Path], what: str) -> None:
        found = {name: file_digest(path) for name, path in files.items()}
        self._same(noted, found, what)

    def _same(self, file: str, found: dict[str, str], what: str) -> None:
        before = self._noted(file)
        if not before:
            write_json(self.path / file, found)
            return
        for name, digest in found.items():
            if before.get(name) != digest:
                raise PlatoError(
                    f"{name}: {what} that {self.path} was begun with; restore it, "
                    f"or begin a new run with another --out."
                )

    def games(self) -> dict[str, str]:
        """The digest of each setup that it plays; none in a run of an older version."""
        return self._noted(GAMES)

    def _noted(self, file: str) -> dict[str, str]:
        path = self.path / file
        return read_json(path) if path.exists() else {}

    def held(self) -> AbstractContextManager[None]:
        """Keeps other processes from training here, and removes what one left half."""
        return held(self.path, "trained")

    def save_state(self, learners: list[Any], update: int) -> None:
        """Writes all that is needed to go on."""
        header = {
            "kind": "state",
            "version": plato.__version__,
            "update": update,
            "config": self.config().to_mapping(),
        }
        write_tree(self.path / STATE, learners, header)

    def updates_done(self) -> int:
        """How many updates the run can go on from; 0 before its first save."""
        path = self.path / STATE
        return self._state_header()["update"] if path.exists() else 0

    def load_state(self, like: list[Any]) -> list[Any]:
        """Where the run stands."""
        return jax.device_put(read_tree(self.path / STATE, like))

    def same_settings(self) -> None:
        """Refuses to go on with other settings than what was done was done with."""
        path = self.path / STATE
        if not path.exists():
            return
        # States of older versions do not say; and they know nothing of later settings.
        before = _flat(self._state_header().get("config", {}))
        now = _flat(self.config().to_mapping())
        for name, value in now.items():
            if name in before and before[name] != value:
                raise PlatoError(
                    f"{self.path / 'config.toml'}: {name} is {value!r}, where the run "
                    f"was begun with {before[name]!r}; restore it, or begin a new run "
                    f"with another --out."
                )

    def _state_header(self) -> dict[str, Any]:
        path = self.path / STATE
        try:
            return read_header(path)
        except PlatoError as error:
            raise PlatoError(
                f"{error} Delete it, and `plato train --resume {self.path}` begins the "
                f"run anew."
            ) from None

    def metrics_path(self, run: RunName) -> Path:
        return self.path / "metrics" / f"{run}.jsonl"

    def keep_metrics(self, runs: Sequence[RunName], updates: int) -> None:
        """Forgets what was written after the state that the run goes on from."""
        for run in runs:
            path = self.metrics_path(run)
            lines = path.read_text().splitlines() if path.exists() else []
            write_text(path, "".join(f"{line}\n" for line in lines[:updates]))

    def add_metrics(self, runs: Sequence[RunName], rows: list[dict[str, Any]]) -> None:
        """Appends the metrics of some updates, given for all runs together."""
        for i, run in enumerate(runs):
            own = [_of_run(row, i, run.setups) for row in rows]
            text = "".join(f"{json.dumps(row)}\n" for row in own)
            try:
                with self.metrics_path(run).open("a") as file:
                    file.write(text)
            except OSError as error:
                raise cannot_write(self.metrics_path(run), error) from None

    def read_metrics(self, run: RunName) -> list[dict[str, Any]]:
        """A row for each update; its return is None where no episode ended.

        Where one policy learns several setups, `returns` has them one by one.
        """
        path = self.metrics_path(run)
        try:
            return [json.loads(line) for line in path.read_text().splitlines()]
        except (OSError, ValueError):
            raise PlatoError(
                f"{path}: cannot be read, or is cut short or damaged."
            ) from None

    def checkpoint_path(self, run: RunName, update: int) -> Path:
        return self.path / "checkpoints" / str(run) / f"{update:06d}.safetensors"

    def checkpoints(self, run: RunName) -> list[Path]:
        """All policies kept of a run, the last one last."""
        return sorted((self.path / "checkpoints" / str(run)).glob("*.safetensors"))

    def last_checkpoint(self, run: RunName) -> Path:
        """The policy that a run has come to."""
        found = self.checkpoints(run)
        if not found:
            raise PlatoError(f"{self.path}: the checkpoints of {run} are missing.")
        return found[-1]

    def save_policy(
        self,
        run: RunName,
        policy: Policy[Any],
        shape: PaddedShape,
        update: int,
        public: Sequence[bool],
    ) -> Path:
        """Keeps the policy of one run as it is after some updates."""
        path = self.checkpoint_path(run, update)
        about = {"setups": list(run.setups), "seed": run.seed, "update": update}
        save_policy(path, policy, self.config().networks, shape, about, public)
        return path


def environment() -> dict[str, Any]:
    """The versions and the device that results may depend on."""
    device = jax.devices()[0]
    return {
        "plato": plato.__version__,
        **{name: version(name) for name in LIBRARIES},
        "python": platform.python_version(),
        "system": platform.platform(),
        "device": device.device_kind,
        "devices": jax.device_count(),
    }


def _flat(settings: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Settings by their paths, `learning.updates` and the like."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{path}{name}.")
        else:
            found[f"{path}{name}"] = value
    return found


def _of_run(row: dict[str, Any], run: int, setups: Sequence[str]) -> dict[str, Any]:
    """One run's metrics of an update; no episode, no return."""
    own = {name: values[run] for name, values in row.items()}
    ended, returns = own.pop("setup_episodes", []), own.pop("setup_return", [])
    numbers: dict[str, Any] = {name: _number(value) for name, value in own.items()}
    if not numbers["episodes"]:
        numbers["return"] = None
    if len(returns):
        numbers["returns"] = {
            setup: _number(mean) if some else None
            for setup, mean, some in zip(setups, returns, ended, strict=True)
        }
    return numbers


def _number(value: Any) -> float | int:
    number = value.item()
    return round(number, 6) if isinstance(number, float) else number
