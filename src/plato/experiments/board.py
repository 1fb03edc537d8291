"""What the workers of a cluster are at, as far as they have said. Extra: cluster."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from plato.cluster import PATIENCE
from plato.experiments.cells import Cell
from plato.experiments.listener import Listener
from plato.runs.train import Progress, Report

Said: TypeAlias = Mapping[str, Progress | None]
"""By cell: how its training goes, or None before the first update and without one."""


class Board:
    """Where workers write how they get on. The cluster has it in a process of its own,
    since they cannot reach whoever asked for the cells."""

    def __init__(self) -> None:
        self._said: dict[str, Progress | None] = {}

    def say(self, cell: str, progress: Progress | None = None) -> None:
        self._said[cell] = progress

    def said(self) -> Said:
        return self._said


def writer(board: Any, cell: Cell) -> Report:
    """Writes on a board that a cell has been begun, and how its training goes."""
    if board is None:
        return lambda progress: None
    board.say.remote(str(cell))
    return lambda progress: board.say.remote(str(cell), replace(progress, metrics={}))


class News:
    """Tells a listener what is on a board: what runs, and how far it is."""

    def __init__(self, ray: Any, listener: Listener) -> None:
        self.ray, self.listener = ray, listener
        # Whatever node it is on may be lost; then it begins anew, empty, on another.
        self.board = ray.remote(num_cpus=0, max_restarts=-1)(Board).remote()
        self.read = -math.inf
        self.at_work: list[Cell] = []

    def tell(self, asked: Sequence[Cell]) -> None:
        """Of the cells that are asked for, which may be more than there are workers,
        those that run; not more often than is worth reading."""
        now = time.monotonic()
        if now - self.read < PATIENCE:
            return
        self.read, said = now, self._said()
        # What trains comes first: it is what takes the time.
        running = [cell for cell in asked if str(cell) in said]
        running.sort(key=lambda cell: not cell.trained_on)
        if not running:
            return
        if running != self.at_work:
            self.at_work = running
            self.listener.begins(running)
        training = progress(running, said)
        if training is not None:
            self.listener.trains(training)

    def _said(self) -> Said:
        try:
            return self.ray.get(self.board.said.remote(), timeout=PATIENCE)
        except self.ray.exceptions.RayError:
            return {}  # it is late, or being begun anew


def progress(running: Sequence[Cell], said: Said) -> Progress | None:
    """Several trainings as one that counts in steps; None if nothing is known of any.

    Those that have not come to their first update count with all that they have left.
    """
    known = {cell: one for cell in running if (one := said[str(cell)]) is not None}
    if not known:
        return None
    done = sum(cell.steps * one.update / one.updates for cell, one in known.items())
    left = [one.seconds_left for one in known.values()]
    return Progress(
        update=int(done),
        updates=sum(cell.steps for cell in running),
        steps_per_second=sum(one.steps_per_second for one in known.values()),
        seconds_left=max(filter(math.isfinite, left), default=math.nan),
        metrics={},
        returns=np.concatenate([one.returns for one in known.values()]),
    )
