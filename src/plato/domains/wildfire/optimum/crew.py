"""A single agent as a factor: it uses, wears and refills on its own."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from jaxtyping import Array

from plato.domains.wildfire.dynamics import Rules
from plato.exact.process import Factor, states_from
from plato.game import NOOP


class Agent(NamedTuple):
    """The state of an agent."""

    suppressant: float
    capacity: float
    equipment: int


class Way(NamedTuple):
    """How an agent spends a step, as far as it alone is concerned."""

    fights: bool
    idle: bool
    states: tuple[bool, ...]
    """In which of its states it can."""


class Choice(NamedTuple):
    """One thing an agent can do: its way, and what it means for the fires."""

    way: Way
    cell: int | None
    power: float
    """0 for NOOP and for a fight that does not reach its cell."""

    @property
    def action(self) -> int:
        return NOOP if self.cell is None else 1 + self.cell


class Crew:
    """A single agent."""

    def __init__(self, rules: Rules, n: int) -> None:
        self.rules, self.n = rules, n
        self.start = Agent(
            float(rules.suppressant_at_start[n]),
            float(rules.capacity_at_start),
            int(rules.equipment_at_start),
        )
        self.states = states_from(self.start, self._successors)

    def _successors(self, agent: Agent) -> Iterable[Agent]:
        ways = [(False, True), (False, False)]
        if agent.suppressant > 0:
            ways.append((True, False))
        for fights, idle in ways:
            for chance, reached in self._outcomes(agent, fights, idle):
                if chance > 0:
                    yield reached

    def choices(self, cells: int) -> list[Choice]:
        """NOOP first; then fights, by what they mean in different states."""
        rules, everywhere = self.rules, (True,) * len(self.states)
        choices = [Choice(Way(False, True, everywhere), None, 0.0)]
        for x in range(cells):
            states: dict[float | None, list[bool]] = {}
            for s, agent in enumerate(self.states):
                power = self._power(agent, x)
                if agent.suppressant > 0 and (
                    power is not None or rules.show_bad_actions
                ):
                    states.setdefault(power, [False] * len(self.states))[s] = True
            for power, where in states.items():
                way = Way(power is not None, False, tuple(where))
                choices.append(Choice(way, x, power or 0.0))
        return choices

    def _power(self, agent: Agent, x: int) -> float | None:
        """What this agent brings to a cell; None if it does not reach it."""
        rules = self.rules
        _, power, reach = rules.equipment_bonus[agent.equipment]
        distance = np.max(np.abs(rules.position[self.n] - rules.cell[x]))
        if distance > rules.reach[self.n] + reach:
            return None
        return float(rules.power[self.n] + power)

    def factor(self, kinds: list[Way], team: int) -> Factor:
        size = len(self.states)
        transition = np.zeros((len(kinds), size, size))
        reward = np.zeros((len(kinds), size))
        for k, way in enumerate(kinds):
            if not way.fights and not way.idle:
                reward[k] = float(self.rules.bad_attack_penalty) / team
            reward[k, ~np.asarray(way.states)] = -np.inf
            for s, agent in enumerate(self.states):
                for chance, reached in self._outcomes(agent, way.fights, way.idle):
                    if chance > 0 and reached in self.states:
                        transition[k, s, self.states.index(reached)] += chance
        return Factor(transition, reward)

    def _outcomes(
        self, agent: Agent, fights: bool, idle: bool
    ) -> Iterable[tuple[float, Agent]]:
        """(chance, next state): use, then wear, then refill with a new tank."""
        rules = self.rules
        uses = _chance(rules.use_probability) if fights else 0.0
        refills = _chance(rules.refill_probability) if idle else 0.0
        for used, p_used in ((1, uses), (0, 1 - uses)):
            left = max(agent.suppressant - used, 0.0)
            for equipment, p_wear in self._wear(agent.equipment):
                kept = Agent(left, agent.capacity, equipment)
                yield p_used * p_wear * (1 - refills), kept
                full = agent.capacity + float(rules.equipment_bonus[equipment, 0])
                for capacity, p_tank in self._tank(agent.capacity):
                    shifted = full + (capacity - agent.capacity)
                    filled = Agent(shifted, capacity, equipment)
                    yield p_used * p_wear * refills * p_tank, filled

    def _wear(self, level: int) -> Iterable[tuple[int, float]]:
        rules = self.rules
        if level == 0:
            repairs = _chance(rules.repair_probability)
            return (int(rules.pristine), repairs), (0, 1 - repairs)
        # One number decides: below the first threshold it fails, below the second
        # it degrades.
        fails = _chance(rules.critical_probability) if level == rules.pristine else 0.0
        degrades = max(_chance(rules.degrade_probability) - fails, 0.0)
        return (0, fails), (level - 1, degrades), (level, 1 - fails - degrades)

    def _tank(self, capacity: float) -> Iterable[tuple[float, float]]:
        rules = self.rules
        switches = _chance(rules.switch_probability)
        yield capacity, 1 - switches
        ends = np.clip(rules.tank_cumulative.astype(np.float64), 0, 1)
        ends[-1] = 1.0  # a number above all of them takes the last tank
        for tank, low, high in zip(rules.tanks, [0.0, *ends[:-1]], ends, strict=True):
            yield float(tank), switches * max(high - low, 0.0)


def _chance(probability: Array | np.ndarray) -> float:
    return float(np.clip(probability, 0, 1))
