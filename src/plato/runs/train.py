"""The loop around the compiled updates: report, save, stop well, go on later."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from plato.domains.setups import Setup, load_setup, public_in_all
from plato.errors import PlatoError
from plato.learners.advice import adviser_files
from plato.learners.config import TrainConfig
from plato.learners.predecessors import predecessor_files
from plato.learners.program import Program
from plato.runs.folder import RunFolder

SAVE_SECONDS = 30.0
SAVE_SHARE = 0.05
"""The most of the time that may go into saving, about: some states are gigabytes."""
REPORT_SECONDS = 0.5


@dataclass(frozen=True)
class Progress:
    """How a training goes, for whoever shows it."""

    update: int
    updates: int
    steps_per_second: float
    seconds_left: float
    metrics: dict[str, np.ndarray]
    """The latest update's, one number for each run."""
    returns: np.ndarray
    """Of the episodes that ended last, for each run; NaN before any has."""

    @property
    def mean_return(self) -> str:
        """As shown, over the runs that have finished an episode."""
        known = self.returns[np.isfinite(self.returns)]
        return f"{known.mean():.1f}" if known.size else "–"


Report = Callable[[Progress], None]


def train(folder: RunFolder, report: Report = lambda progress: None) -> bool:
    """Trains what a folder says from where it stands; whether it came to the end.

    It stops early at the first Ctrl-C, between two updates, with everything saved.
    Whenever it is killed, calling it again ends with the same policies, bit for bit.
    """
    config = folder.config()
    with folder.held():
        return _train(folder, config, report)


def pause_before_saving(took: float) -> float:
    """Seconds from one save to the next, when the last one took so many."""
    return max(SAVE_SECONDS, took / SAVE_SHARE)


def _train(folder: RunFolder, config: TrainConfig, report: Report) -> bool:
    setups = {name: load_setup(name) for name in config.setups}
    folder.same_games(setups)
    if config.advisers:
        folder.same_advisers(adviser_files(config.advisers, setups))
    if config.begin_with:
        folder.same_predecessors(predecessor_files(config, setups))
    program = Program(config, setups)
    done = folder.updates_done()
    learner = folder.load_state(program.after(done)) if done else program.start()
    folder.keep_metrics(program.runs, done)
    loop = _Loop(folder, program, setups, report, done)
    with _ctrl_c() as stop:
        while loop.update < config.learning.updates and not stop.is_set():
            learner = loop.step(learner)
        loop.flush()
        folder.save_state(learner, loop.update)
    return loop.update == config.learning.updates


@contextmanager
def _ctrl_c() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets; the second one interrupts as usual."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    usual = signal.getsignal(signal.SIGINT)

    def ask(*_: Any) -> None:
        asked.set()
        signal.signal(signal.SIGINT, usual)

    signal.signal(signal.SIGINT, ask)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, usual)


class _Loop:
    """Between two updates: what to write and when. The results do not depend on it."""

    def __init__(
        self,
        folder: RunFolder,
        program: Program,
        setups: dict[str, Setup],
        report: Report,
        update: int,
    ) -> None:
        self.folder, self.program, self.report = folder, program, report
        self.public = {
            names: public_in_all([setups[name] for name in names])
            for names in {run.setups for run in program.runs}
        }
        self.update, self.first = update, update
        self.begun = self.reported = time.monotonic()
        self.due = self.begun + pause_before_saving(0.0)
        self.pending: list[dict[str, Any]] = []
        self.returns = np.full(len(program.runs), np.nan)
        updates = program.config.learning.updates
        keep = min(program.config.checkpoints, updates)
        self.kept = {round(updates * (i + 1) / keep) for i in range(keep)}

    def step(self, learner: Any) -> Any:
        self.update += 1
        learner, metrics = self.program.advance(learner, self.update)
        number = [
            np.full(len(group.runs), self.update) for group in self.program.groups
        ]
        self.pending.append({"update": number} | metrics)
        now = time.monotonic()
        if self.update == self.first + 1 or now - self.reported > REPORT_SECONDS:
            self.flush()
        if self.update in self.kept:
            self._keep_policies(learner)
        if now > self.due:
            self.flush()
            self._save(learner)
        return learner

    def _save(self, learner: Any) -> None:
        begun = time.monotonic()
        self.folder.save_state(learner, self.update)
        saved = time.monotonic()
        self.due = saved + pause_before_saving(saved - begun)

    def flush(self) -> None:
        """Writes and shows the metrics that have come up since the last time."""
        if not self.pending:
            return
        parts, self.pending = jax.device_get(self.pending), []
        rows = [
            {name: self.program.in_order(part) for name, part in row.items()}
            for row in parts
        ]
        for row in rows:
            _refuse_nonsense(row, self.folder)
            self.returns = np.where(row["episodes"], row["return"], self.returns)
        self.folder.add_metrics(self.program.runs, rows)
        self.reported = time.monotonic()
        # The first update compiles; it says nothing about the speed of the others.
        if self.update == self.first + 1:
            self.begun = self.reported
        learning, seconds = self.program.config.learning, self.reported - self.begun
        played = learning.played(self.update) - learning.played(self.first + 1)
        left = learning.played(learning.updates) - learning.played(self.update)
        self.report(
            Progress(
                update=self.update,
                updates=learning.updates,
                steps_per_second=played * len(self.program.runs) / max(seconds, 1e-9),
                seconds_left=left * seconds / played if played else float("nan"),
                metrics=rows[-1],
                returns=self.returns,
            )
        )

    def _keep_policies(self, learner: Any) -> None:
        policies = self.program.policies(learner)
        for run, (policy, shape) in zip(self.program.runs, policies, strict=True):
            public = self.public[run.setups]
            self.folder.save_policy(run, policy, shape, self.update, public)


def _refuse_nonsense(row: dict[str, Any], folder: RunFolder) -> None:
    for name, values in row.items():
        if not np.isfinite(values).all():
            raise PlatoError(
                f"{name} is not a number at update {int(row['update'][0])}; the last "
                f"good state is in {folder.path}: lower the learning rates, or scale "
                f"the rewards, and begin anew."
            )
