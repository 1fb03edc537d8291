"""How much a training plays. Imports nothing heavy: the command line reads it."""

from dataclasses import dataclass

from plato.configuration import whole_number
from plato.errors import PlatoError


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What the settings of all methods have in common."""

    games: int
    """Games played side by side."""
    steps: int
    """Steps of each game between two updates."""
    updates: int
    """Rollouts, each followed by an update."""
    beginnings: int = 1
    """Trainings to begin with, each from weights of its own; the best goes on alone."""
    audition: float = 0.25
    """Part of the updates after which it is chosen, by its latest returns."""

    def __post_init__(self) -> None:
        for name in ("games", "steps", "updates", "beginnings"):
            whole_number(name, getattr(self, name), 1)
        if not 0 < self.audition <= 1:
            raise PlatoError(
                f"audition must be a part of the training, above 0 and up to 1, not "
                f"{self.audition}."
            )

    @property
    def auditions(self) -> int:
        """The update after which one beginning goes on alone."""
        if self.beginnings == 1:
            return 0
        return max(round(self.audition * self.updates), 1)

    def rollouts(self, updates: int) -> int:
        """How many all beginnings have played when so many updates are done."""
        return updates + (self.beginnings - 1) * min(updates, self.auditions)

    def played(self, updates: int) -> int:
        """Environment steps taken when so many updates are done."""
        return self.rollouts(updates) * self.games * self.steps
