"""Openness as it happens: what came, what went, and when."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int


@dataclass(frozen=True)
class Events:
    """Single events in the order of time, then of kinds, then of rows."""

    kinds: tuple[str, ...]
    time: Int[np.ndarray, " event"]
    """The moment at which it is first seen: 1 for the first step."""
    kind: Int[np.ndarray, " event"]
    """Which of `kinds`."""
    row: Int[np.ndarray, " event"]
    """Of the agent or task that it happened to."""

    @property
    def counts(self) -> dict[str, int]:
        """How many there were of each kind."""
        found = np.bincount(self.kind, minlength=len(self.kinds)).tolist()
        return dict(zip(self.kinds, found, strict=True))

    def at(self, time: int) -> list[tuple[str, int]]:
        """What happened in the step that led to a moment: (kind, row)."""
        low, high = np.searchsorted(self.time, [time, time + 1])
        places = zip(self.kind[low:high], self.row[low:high], strict=True)
        return [(self.kinds[kind], int(row)) for kind, row in places]


def agent_changes(
    present: Bool[np.ndarray, "time agent"],
) -> dict[str, Bool[np.ndarray, "step agent"]]:
    """Who left and who came back in each step; true of any game."""
    before, after = present[:-1], present[1:]
    return {"departure": before & ~after, "return": ~before & after}


def listed(changes: Mapping[str, Bool[np.ndarray, "step row"]]) -> Events:
    """Changes of whole rows as single events."""
    found = [np.nonzero(mask) for mask in changes.values()]
    time = np.concatenate([steps for steps, _ in found]) + 1
    row = np.concatenate([rows for _, rows in found])
    kind = np.repeat(np.arange(len(found)), [len(steps) for steps, _ in found])
    order = np.lexsort((row, kind, time))
    return Events(tuple(changes), time[order], kind[order], row[order])
