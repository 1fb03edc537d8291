"""Doing cells: train, choose, play, and put down all that came of it."""

import hashlib
import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import plato
from plato.domains.setups import load_setup
from plato.errors import PlatoError
from plato.evaluation.contestants import Contestant, Training
from plato.evaluation.protocols import Examiner, Result
from plato.experiments.cells import Cell, learned_from, setup_digests
from plato.experiments.chunks import covers, together
from plato.experiments.store import FORMAT, Entry, kept
from plato.files import write_json, write_text
from plato.learners.config import RunName
from plato.runs.folder import RunFolder, environment
from plato.runs.train import Report, train
from plato.runs.trainings import trainings

DIGITS = 4
"""Decimals that are kept of each episode's numbers."""
ABOUT = "cells.json"
"""In the folder of a training: which cells it is of, what their setups are, and what
they learn from."""


def do(
    cells: Sequence[Cell], work: Path, report: Report = lambda progress: None
) -> Iterator[tuple[Cell, Entry]]:
    """Does cells that go together, and gives what came of each as it is known.

    Trainings go on from where they were left in `work`, a store's folder, and leave
    nothing there when all of their cells have been taken.
    """
    if not cells[0].trained_on:
        for cell in cells:
            yield cell, _given(cell)
        return
    known = {cell: cell.fingerprint for cell in cells}
    folder = _finished(cells, work) or _begun(cells, work)
    seconds = _trained_for(folder, report) / len(folder.config().runs)
    _refuse_changed(known)
    found = {(t.setups, t.seed): t for t in trainings(folder.path)}
    for cell in cells:
        training = found[cell.trained_on, cell.seed]
        yield cell, _trained(cell, training, folder, seconds)
    _clear(work, {cell.key for cell in cells})


def _refuse_changed(known: Mapping[Cell, str]) -> None:
    """Refuses cells that are not what they were when their training began: a file that
    they learned from is another one by now."""
    for cell, fingerprint in known.items():
        if cell.fingerprint != fingerprint:
            raise PlatoError(
                f"{cell}: a policy that it learns from was replaced while it was "
                f"trained; the same command begins it anew."
            )


def _finished(cells: Sequence[Cell], work: Path) -> RunFolder | None:
    """A training that has come to its end, and of which these cells were not taken.

    It may be of more cells than these: of those that were stored before the process
    was killed. One that is not at its end may be too large for this device.
    """
    now = _found(cells)
    for path in sorted(work.glob("*")):
        folder = RunFolder(path)
        try:
            if not covers(folder.config(), cells) or not _is_finished(folder):
                continue
        except PlatoError:  # half made, or of another version
            continue
        if _as_then(_about(folder), now):
            return folder
    return None


def _begun(cells: Sequence[Cell], work: Path) -> RunFolder:
    """The training of just these cells, as far as it is."""
    config, found = together(cells), _found(cells)
    # A setup that has been edited is another game, which is not to be gone on with.
    known = repr((config, *found.values()))
    folder = RunFolder(work / hashlib.sha256(known.encode()).hexdigest()[:12])
    if not (folder.path / "config.toml").exists():
        about = found | {"cells": [cell.key for cell in cells]}
        write_json(folder.path / ABOUT, about)
        folder = RunFolder.create(folder.path, config)
    return folder


def _trained_for(folder: RunFolder, report: Report) -> float:
    """Trains to the end what is not there yet; the seconds that took in all."""
    begun, spent = time.monotonic(), folder.path / "seconds"
    before = float(spent.read_text()) if spent.exists() else 0.0
    if _is_finished(folder):
        return before
    try:
        if not train(folder, report):
            raise KeyboardInterrupt
    finally:  # what was spent before it was stopped counts too
        in_all = before + time.monotonic() - begun
        write_text(spent, f"{in_all:.2f}")
    return in_all


def _clear(work: Path, taken: set[str]) -> None:
    """Removes trainings of what was taken just now, if no other cell needs them; those
    that were too large for the device are among them."""
    for path in work.glob("*"):
        keys = set(_about(RunFolder(path)).get("cells", ()))
        if keys & taken and all(kept(work, key) for key in keys - taken):
            shutil.rmtree(path, ignore_errors=True)


def _is_finished(folder: RunFolder) -> bool:
    return folder.updates_done() == folder.config().learning.updates


def _about(folder: RunFolder) -> dict[str, Any]:
    try:
        return json.loads((folder.path / ABOUT).read_text())
    except (FileNotFoundError, NotADirectoryError):
        return {}  # of an older version, or being removed by another process


def _found(cells: Sequence[Cell]) -> dict[str, dict[str, str]]:
    """Digests of all that trainings of cells find under names: setups, and policies to
    learn from where there are any."""
    trained_on = sorted({name for cell in cells for name in cell.trained_on})
    found = {"setups": setup_digests(trained_on)}
    for cell in cells:
        for kind, digests in learned_from(cell.config()).items():
            found.setdefault(kind, {}).update(digests)
    return found


def _as_then(then: Mapping[str, Any], now: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether a training found what is found now, as far as it is known."""
    return all(
        then.get(kind, {}).get(name, digest) == digest
        for kind, digests in now.items()
        for name, digest in digests.items()
    )


def _given(cell: Cell) -> Entry:
    examiner, begun = Examiner(cell.protocol), time.monotonic()
    contestant = Contestant(cell.row.name, policy=cell.row.policy)
    results = [examiner.result(contestant, load_setup(s)) for s in cell.plays]
    return _entry(cell, results, {}, {"playing": time.monotonic() - begun})


def _trained(
    cell: Cell, training: Training, folder: RunFolder, seconds: float
) -> Entry:
    examiner, begun = Examiner(cell.protocol), time.monotonic()
    contestant = Contestant(cell.row.name, trainings=(training,))
    results = [examiner.result(contestant, load_setup(s)) for s in cell.plays]
    chosen = examiner.choose(training)[0]
    took = {"training": seconds, "playing": time.monotonic() - begun}
    rows = folder.read_metrics(RunName(training.setups, training.seed))
    learning = folder.config().learning
    about = {
        "environment": folder.environment(),
        "chosen": list(results[0].played[0].updates),
        "score": round(examiner.score(training, chosen), DIGITS),
        "steps": learning.played(learning.updates),
        "curve": {
            "steps": [learning.played(int(row["update"])) for row in _some(rows)],
            "return": [round(row["return"], 2) for row in _some(rows)],
        },
    }
    return replace(_entry(cell, results, about, took), policy=chosen.path.read_bytes())


def _some(rows: list[Any], most: int = 200) -> list[Any]:
    """Evenly spaced ones, the last among them."""
    rows = [row for row in rows if row["episodes"]]
    if len(rows) <= most:
        return rows
    return [rows[i] for i in np.linspace(0, len(rows) - 1, most).round().astype(int)]


def _entry(
    cell: Cell,
    results: Sequence[Result],
    about: dict[str, Any],
    seconds: dict[str, float],
) -> Entry:
    data = {
        "format": FORMAT,
        "fingerprint": cell.fingerprint,
        "cell": cell.to_mapping(),
        "setups": setup_digests(cell.setups),
        "code": code(),
        "environment": environment(),
        "seconds": {name: round(took, 2) for name, took in seconds.items()},
        **about,
        "episodes": {
            result.setup: {
                metric: [_numbers(row) for row in values]
                for metric, values in result.played[0].metrics.items()
            }
            for result in results
        },
    }
    return Entry(cell.fingerprint, data)


def _numbers(row: np.ndarray) -> list[float]:
    rounded = np.round(row, DIGITS).tolist()
    return [int(number) if number == int(number) else number for number in rounded]


@cache
def code() -> dict[str, str]:
    """Which code this is: its version, and a digest of all of its files."""
    root, digest = Path(plato.__file__).parent, hashlib.sha256()
    for path in sorted(p for p in root.rglob("*") if p.suffix in (".py", ".toml")):
        digest.update(str(path.relative_to(root)).encode())
        digest.update(path.read_bytes())
    return {"plato": plato.__version__, "digest": digest.hexdigest()[:12]}
