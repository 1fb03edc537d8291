"""A single cell as a factor: it grows or shrinks on its own, and may catch fire."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from plato.domains.wildfire.dynamics import Rules
from plato.domains.wildfire.optimum.crew import Choice
from plato.exact.process import Factor, states_from


class Cell(NamedTuple):
    """The state of a cell that can burn."""

    intensity: int
    fuel: int
    """Without the fuel rule 0; 1 where it cannot run out within the horizon."""


class Hit(NamedTuple):
    """What a joint action means for one cell."""

    targeted: bool
    shrink: float | None
    """The chance to lose intensity; None where the fire is not matched."""
    share: float
    """The part of the team that is rewarded if the fire goes out."""


class Fire:
    """A single cell."""

    def __init__(self, rules: Rules, x: int) -> None:
        self.rules, self.x = rules, x
        self.burnt_out, self.uses_fuel = int(rules.burnt_out), bool(rules.uses_fuel)
        # A step takes at most one unit, so more fuel than steps cannot run out.
        self.plenty = int(rules.fuel_at_start) > int(rules.max_steps)
        fuel = 1 if self.plenty else int(rules.fuel_at_start)
        temperature = int(rules.ignition_temp[x]) if rules.lit_at_start[x] else 0
        self.start = Cell(temperature, fuel if self.uses_fuel else 0)
        self.states = states_from(self.start, self._successors)

    def burns(self, cell: Cell) -> bool:
        return 0 < cell.intensity < self.burnt_out

    def is_burnt_out(self, cell: Cell) -> bool:
        return cell.intensity == self.burnt_out

    def can_ignite(self, cell: Cell) -> bool:
        return cell.intensity == 0 and not (self.uses_fuel and cell.fuel <= 0)

    def ignited(self, cell: Cell) -> Cell:
        return Cell(int(self.rules.ignition_temp[self.x]), cell.fuel)

    def grown(self, cell: Cell) -> Cell:
        grown = Cell(cell.intensity + 1, cell.fuel)
        if not self.is_burnt_out(grown) or not self.uses_fuel:
            return grown
        left = cell.fuel if self.plenty else max(cell.fuel - 1, 0)
        return Cell(grown.intensity, 0 if self.rules.burnout_clears_fuel else left)

    def shrunk(self, cell: Cell) -> Cell:
        shrunk = Cell(cell.intensity - 1, cell.fuel)
        uses = shrunk.intensity == 0 and self.uses_fuel and not self.plenty
        return Cell(shrunk.intensity, cell.fuel - 1) if uses else shrunk

    def _successors(self, cell: Cell) -> Iterable[Cell]:
        if self.burns(cell):
            yield self.grown(cell)
            yield self.shrunk(cell)
        elif self.can_ignite(cell) and self.can_catch_fire:
            yield self.ignited(cell)

    @property
    def can_catch_fire(self) -> bool:
        rules = self.rules
        around = rules.spread_rates[rules.neighbours[self.x] != self.x]
        return bool(rules.ignition_probability > 0 or np.any(around > 0))

    @property
    def width(self) -> int:
        """States when those just ignited are told apart."""
        able = sum(map(self.can_ignite, self.states)) if self.can_catch_fire else 0
        return len(self.states) + able

    def hit(self, actions: tuple[Choice, ...]) -> Hit:
        """What a joint action does to this cell, in the precision of the game."""
        rules = self.rules
        mine = [choice for choice in actions if choice.cell == self.x]
        powers = [choice.power for choice in mine if choice.way.fights]
        attack = np.sum(np.asarray(powers, np.float32), dtype=np.float32)
        extra = attack - np.float32(rules.size[self.x])
        if extra < 0:
            return Hit(bool(mine), None, 0.0)
        chance = rules.suppression_probability + extra * rules.suppression_bonus
        share = len(powers) / len(actions) if rules.localize_putouts else 1.0
        return Hit(bool(mine), float(np.clip(chance, 0, 1)), share)

    def factor(self, kinds: list[Hit]) -> Factor:
        size = len(self.states)
        transition = np.zeros((len(kinds), size, size))
        reward = np.zeros((len(kinds), size))
        for k, hit in enumerate(kinds):
            for s, cell in enumerate(self.states):
                for chance, reached, gain in self._outcomes(cell, hit):
                    transition[k, s, self.states.index(reached)] += chance
                    reward[k, s] += chance * gain
                if hit.targeted and not self.burns(cell):
                    reward[k, s] = -np.inf  # there is nothing to fight
        return Factor(transition, reward)

    def _outcomes(self, cell: Cell, hit: Hit) -> Iterable[tuple[float, Cell, float]]:
        """(chance, next state, team reward) of growth or of suppression."""
        rules = self.rules
        if not self.burns(cell):
            yield 1.0, cell, 0.0
            return
        if hit.shrink is None:
            last = cell.intensity == self.burnt_out - 1
            moves = float(
                rules.burnout_probability if last else rules.growth_probability
            )
            reached = self.grown(cell)
            gain = float(rules.burnout_reward[self.x]) if last else 0.0
        else:
            moves = hit.shrink
            reached = self.shrunk(cell)
            out = reached.intensity == 0
            gain = hit.share * float(rules.putout_reward[self.x]) if out else 0.0
        moves = min(max(moves, 0.0), 1.0)
        yield moves, reached, gain
        yield 1 - moves, cell, 0.0
