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
from plato.tensors import numbers

SAVE_SECONDS = 30.0
SAVE_SHARE = 0.05
"""The most of the time that may go into saving, about: some states are gigabytes."""
REPORT_SECONDS = 0.5
LOSSES = ("policy_loss", "value_loss", "entropy", "advice")
"""What is named first, of all that is no number at once."""


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


class NotANumberError(Exception):
    """A metric of some trainings that is not finite, and when that was seen first."""

    def __init__(self, metric: str, runs: list[str], update: int) -> None:
        some = ", ".join(runs[:3]) + (" …" if len(runs) > 3 else "")
        super().__init__(f"{metric} of {some} is not a number at update {update}.")
        self.update = update


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
    folder.same_settings()
    setups = {name: load_setup(name) for name in config.setups}
    folder.same_games(setups)
    if config.advisers:
        folder.same_advisers(adviser_files(config.advisers, setups))
    if config.begin_with:
        folder.same_predecessors(predecessor_files(config, setups))
    program = Program(config, setups)
    done = folder.updates_done()
    learner = _standing(folder, program)
    folder.keep_metrics(program.runs, done)
    loop = _Loop(folder, program, setups, report, done)
    with _ctrl_c() as stop:
        try:
            while loop.update < config.learning.updates and not stop.is_set():
                learner = loop.step(learner)
            loop.flush()
        except NotANumberError as nonsense:
            del learner
            raise _saved_before(nonsense, folder, program) from None
        folder.save_state(learner, loop.update)
    return loop.update == config.learning.updates


def _standing(folder: RunFolder, program: Program) -> list[Any]:
    """The learners as they were saved last; new ones before that."""
    done = folder.updates_done()
    return folder.load_state(program.after(done)) if done else program.start()


def _saved_before(
    nonsense: NotANumberError, folder: RunFolder, program: Program
) -> PlatoError:
    """Saves the last good state before a number was none, and says so.

    It is long gone when that shows, but the way there from the last save is always
    the same.
    """
    update, learner, good = folder.updates_done(), _standing(folder, program), None
    for following in range(update + 1, nonsense.update):
        learner, _ = program.advance(learner, following)
        found = jax.device_get(jax.tree.map(numbers, learner))
        if not _all_finite(found):
            break
        update, good = following, found
    if good is not None:
        folder.save_state(good, update)
    where = (
        f"The state after update {update} and the metrics until then are in "
        f"{folder.path}"
        if update
        else f"Nothing was learned before that in {folder.path}"
    )
    return PlatoError(
        f"{nonsense} {where}; lower the learning rates, or scale the rewards, and "
        f"begin a new run with another --out."
    )


def _all_finite(learners: list[Any]) -> bool:
    """Whether nothing that was learned is infinite, or no number at all."""
    leaves = jax.tree.leaves([one.learner for group in learners for one in group])
    return all(np.isfinite(leaf).all() for leaf in leaves if leaf.dtype.kind == "f")


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
        keeps, saves = self.update in self.kept, now > self.due
        first = self.update == self.first + 1
        # Before anything is kept, too: then it is known to be made of numbers.
        if first or keeps or saves or now - self.reported > REPORT_SECONDS:
            self.flush()
        if keeps:
            self._keep_policies(learner)
        if saves:
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
        found = [self._nonsense(row) for row in rows]
        nonsense = next(filter(None, found), None)
        good = rows if nonsense is None else rows[: found.index(nonsense)]
        self.folder.add_metrics(self.program.runs, good)
        if nonsense is not None:
            raise nonsense
        for row in rows:
            self.returns = np.where(row["episodes"], row["return"], self.returns)
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

    def _nonsense(self, row: dict[str, np.ndarray]) -> "NotANumberError | None":
        """What of an update's metrics is no number, the losses first."""
        for name in sorted(row, key=lambda name: (name not in LOSSES, name)):
            pairs = zip(self.program.runs, row[name], strict=True)
            bad = [str(run) for run, values in pairs if not np.isfinite(values).all()]
            if bad:
                return NotANumberError(name, bad, int(row["update"][0]))
        return None

    def _keep_policies(self, learner: Any) -> None:
        policies = self.program.policies(learner)
        for run, (policy, shape) in zip(self.program.runs, policies, strict=True):
            public = self.public[run.setups]
            self.folder.save_policy(run, policy, shape, self.update, public)
