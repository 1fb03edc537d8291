"""Trials: short trainings that share a compiled program where their shapes agree.

A trial is one training, or several that differ in their seeds: its score is their mean.
On an accelerator, trainings of one shape are done side by side; a CPU does them one by
one, in as many threads as it has cores, as more of them would not fit into its caches.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from plato.domains.setups import Setup
from plato.evaluation.evaluate import evaluate
from plato.evaluation.named import acting
from plato.evaluation.protocols import VALIDATION
from plato.learners.config import RunName, TrainConfig, TrainSettings
from plato.learners.device_memory import fits, in_two
from plato.learners.program import Group
from plato.policies.policy import Policy
from plato.tuning.spaces import SPACES, Range, configuration

Found: TypeAlias = Mapping[str, float]
"""The value of each setting that is searched."""
REPORT_SECONDS = 0.5


class Training(NamedTuple):
    """One of the trainings of a trial."""

    trial: int
    """The place of the trial."""
    run: RunName


Members: TypeAlias = list[Training]
"""Trainings of one program."""


@dataclass(frozen=True)
class Ears:
    """Whoever wants to know how trials go. Called from several threads."""

    trains: Callable[[list[int], float], None] = lambda places, share: None
    """How much of a training some trials have behind them."""
    says: Callable[[str], None] = lambda line: None


NOBODY = Ears()


def scores(
    base: TrainSettings,
    setup: Setup,
    trials: Sequence[Found],
    *,
    steps: int,
    seed: int,
    validation: int,
    trainings: int = 1,
    ears: Ears = NOBODY,
    threads: int | None = None,
) -> Iterator[tuple[int, float]]:
    """The place of each trial and its mean validation return, as they come to be known;
    NaN where one of its trainings broke down. Programs are run in so many threads, or
    in as many as there are cores.
    """
    budget = {"steps": steps, "seed": seed, "trainings": trainings}
    configs = [configuration(base, setup.name, found, **budget) for found in trials]
    space = SPACES[base.method].items()
    numbers = [name for name, of in space if isinstance(of, Range)]
    shapes = [shape(config, base, numbers) for config in configs]
    together: dict[TrainConfig, Members] = {}
    for i, (config, form) in enumerate(zip(configs, shapes, strict=True)):
        # Other seeds for each trial would be luck that the search mistakes for merit.
        own = [Training(i, run) for run in config.runs]
        together.setdefault(form, []).extend(own)
    groups = list(together.values())
    if not side_by_side():
        groups = [[training] for members in groups for training in members]
    told = _Told([config.seeds for config in configs], ears)
    programs = _Programs(setup, trials, shapes, numbers, told, threads or cores())
    known: dict[int, list[float]] = {i: [] for i in range(len(trials))}
    for members, policies in programs.all(groups):
        for training, policy in zip(members, policies, strict=True):
            own = known[training.trial]
            lost = policy is None
            own.append(float("nan") if lost else _score(policy, setup, validation))
            if len(own) == trainings:
                yield training.trial, sum(own) / trainings


def side_by_side() -> bool:
    """Whether this device is the faster the more trainings it does at once."""
    return jax.default_backend() != "cpu"


def cores() -> int:
    """As many as this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def shape(
    config: TrainConfig, base: TrainSettings, numbers: Sequence[str]
) -> TrainConfig:
    """What of a trial's settings its program is compiled for: the numbers are the
    base's, whatever its own, which the program is given as data."""
    usual = {name: getattr(base.learning, name) for name in numbers}
    return replace(config, learning=replace(config.learning, **usual))


class _Told:
    """How far trials are, of which each may be several trainings."""

    def __init__(self, trainings: Sequence[int], ears: Ears) -> None:
        self.trainings, self.ears = trainings, ears
        self.shares: list[dict[RunName, float]] = [{} for _ in trainings]
        self.lock = threading.Lock()

    def trains(self, members: Members, share: float) -> None:
        with self.lock:
            for one in members:
                self.shares[one.trial][one.run] = share
            places: dict[float, list[int]] = {}
            for place in dict.fromkeys(one.trial for one in members):
                done = sum(self.shares[place].values()) / self.trainings[place]
                places.setdefault(done, []).append(place)
            # Here, so that what is told last is how far they are.
            for done, own in places.items():
                self.ears.trains(own, done)


Trained: TypeAlias = tuple[Members, Sequence[Policy[Any] | None]]
"""Trainings and their policies; None for one that does not fit into memory."""


@dataclass(frozen=True)
class _Programs:
    """The trainings of some trials, in as many programs as it takes."""

    setup: Setup
    trials: Sequence[Found]
    shapes: Sequence[TrainConfig]
    """What the program of each trial is compiled for."""
    numbers: Sequence[str]
    """The settings that a program has as data."""
    told: _Told
    threads: int
    over: threading.Event = field(default_factory=threading.Event)
    """Set when nobody waits for them any more."""

    def all(self, groups: Sequence[Members]) -> Iterator[Trained]:
        """Trainings group by group, those that are done first first."""
        too_large: list[Members] = []
        # Programs are compiled and run side by side, one to a core.
        pool = ThreadPoolExecutor(self.threads)
        running = {pool.submit(self.attempt, members): members for members in groups}
        try:
            for future in as_completed(running):
                members, policies = running[future], future.result()
                if policies is None:
                    too_large.append(members)
                else:
                    yield members, policies
        finally:
            # Nobody waits for compilers, who cannot be told that nobody does.
            self.over.set()
            pool.shutdown(wait=False, cancel_futures=True)
        self.over.clear()
        yield from self.in_parts(too_large)

    def in_parts(self, too_large: Sequence[Members]) -> Iterator[Trained]:
        """What did not fit beside others, with the device to itself: in halves, or as
        it is if it cannot be split."""
        waiting = [part for members in too_large for part in self.halves(members)]
        while waiting:
            members = waiting.pop(0)
            policies = self.attempt(members)
            if policies is not None:
                yield members, policies
            elif len(members) > 1:
                waiting = [*self.halves(members), *waiting]
            else:
                settings = self.trials[members[0].trial].items()
                found = ", ".join(f"{k} {v:.3g}" for k, v in settings)
                self.told.ears.says(
                    f"The trial with {found} does not fit into this device's memory; "
                    f"it counts as one without a score."
                )
                yield members, [None]

    def halves(self, members: Members) -> list[Members]:
        if len(members) == 1:
            return [members]
        self.told.ears.says(in_two(len(members)))
        middle = len(members) // 2
        return [members[:middle], members[middle:]]

    def attempt(self, members: Members) -> list[Policy[Any]] | None:
        """The policies of one program; None if it does not fit into memory."""
        found: list[Policy[Any]] = []
        return found if fits(lambda: found.extend(self.train(members))) else None

    def train(self, members: Members) -> list[Policy[Any]]:
        config = self.shapes[members[0].trial]
        columns = {
            name: jnp.asarray([self.trials[one.trial][name] for one in members])
            for name in self.numbers
        }
        runs = [one.run for one in members]
        group = Group(config, {self.setup.name: self.setup}, runs, columns)
        self.told.trains(members, 0.0)
        learner, updates = group.start(), config.learning.updates
        reported = time.monotonic()
        for update in range(1, updates + 1):
            if self.over.is_set():
                break
            learner, metrics = group.advance(learner, update)
            if update == updates or time.monotonic() - reported > REPORT_SECONDS:
                # Updates are begun long before they are done.
                jax.block_until_ready(metrics)
                self.told.trains(members, update / updates)
                reported = time.monotonic()
        return group.policies(learner)


def _score(policy: Policy[Any], setup: Setup, episodes: int) -> float:
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(policy)):
        return float("nan")
    player = acting(policy, "own")
    played = evaluate(player, setup, episodes=episodes, seed=VALIDATION.start)
    return float(played.metrics["return"].mean())
