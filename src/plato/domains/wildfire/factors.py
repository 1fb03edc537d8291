"""Wildfire as a decision process in factors: a factor for each cell and each agent.

Given the joint action, cells grow and shrink and agents use, wear and refill each on
their own; only ignition looks at other cells, at those that burn after all that. Every
rule of the dynamics is here a second time, as probabilities instead of as events.
"""

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from plato.domains.wildfire.config import WildfireConfig
from plato.domains.wildfire.dynamics import Rules
from plato.domains.wildfire.game import rules_from_config
from plato.exact.induction import Size
from plato.exact.process import Factor, Process
from plato.game import NOOP


class Cell(NamedTuple):
    """The state of a cell that can burn."""

    intensity: int
    fuel: int
    """Without the fuel rule 0; 1 where it cannot run out within the horizon."""


class Agent(NamedTuple):
    """The state of an agent."""

    suppressant: float
    capacity: float
    equipment: int


@dataclass(frozen=True)
class Model:
    """The process of a configuration, and what its indices stand for."""

    process: Process
    cells: tuple[tuple[Cell, ...], ...]
    agents: tuple[tuple[Agent, ...], ...]
    actions: Int[np.ndarray, "action agent"]
    """What the agents do in each joint action, as the game numbers it."""
    knows_fuel: bool
    """Whether a cell's fuel can make a difference."""


def model_of(config: WildfireConfig) -> Model:
    """Builds the process; states are found by following what can happen."""
    rules, fires, crews, choices = _parts(config)
    joint = list(itertools.product(*choices))

    factors, modes = [], []
    for fire in fires:
        hits = [fire.hit(actions) for actions in joint]
        kinds = list(dict.fromkeys(hits))
        factors.append(fire.factor(kinds))
        modes.append([kinds.index(hit) for hit in hits])
    for n, crew in enumerate(crews):
        ways = [choice.way for choice in choices[n]]
        kinds = list(dict.fromkeys(ways))
        factors.append(crew.factor(kinds, len(crews)))
        modes.append([kinds.index(actions[n].way) for actions in joint])

    cells = tuple(fire.states for fire in fires)
    agents = tuple(crew.states for crew in crews)
    process = Process(
        factors=tuple(factors),
        actions=np.asarray(modes, np.int32).T,
        start=tuple(part.states.index(part.start) for part in (*fires, *crews)),
        horizon=config.max_steps,
        settle=_ignition(rules, fires),
        over=_over(rules, fires, len(crews)),
        bonus=_bonus(rules, fires, len(crews)),
    )
    taken = [[choice.action for choice in actions] for actions in joint]
    knows_fuel = bool(rules.uses_fuel) and not all(fire.plenty for fire in fires)
    return Model(process, cells, agents, np.asarray(taken, np.int32), knows_fuel)


def size_of(config: WildfireConfig) -> Size:
    """What the exact solution of a configuration takes."""
    _, fires, crews, choices = _parts(config)
    widths = [fire.width for fire in fires] + [len(crew.states) for crew in crews]
    return Size(
        shape=tuple(len(part.states) for part in (*fires, *crews)),
        actions=math.prod(len(each) for each in choices),
        horizon=config.max_steps,
        widest=math.prod(widths),
    )


def _parts(
    config: WildfireConfig,
) -> "tuple[Rules, list[_Fire], list[_Crew], list[list[Choice]]]":
    rules: Rules = jax.device_get(rules_from_config(config))
    fires = [_Fire(rules, x) for x in range(len(config.fire_cells))]
    crews = [_Crew(rules, n) for n in range(len(config.agent.agents))]
    return rules, fires, crews, [crew.choices(len(fires)) for crew in crews]


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


class Hit(NamedTuple):
    """What a joint action means for one cell."""

    targeted: bool
    shrink: float | None
    """The chance to lose intensity; None where the fire is not matched."""
    share: float
    """The part of the team that is rewarded if the fire goes out."""


State = TypeVar("State")


def _reached(
    start: State, successors: Callable[[State], Iterable[State]]
) -> tuple[State, ...]:
    """All states that can follow a first one, and it, in sorted order."""
    found, ahead = {start}, [start]
    while ahead:
        for state in successors(ahead.pop()):
            if state not in found:
                found.add(state)
                ahead.append(state)
    return tuple(sorted(found))  # pyright: ignore[reportArgumentType]


class _Fire:
    """A single cell."""

    def __init__(self, rules: Rules, x: int) -> None:
        self.rules, self.x = rules, x
        self.burnt_out, self.uses_fuel = int(rules.burnt_out), bool(rules.uses_fuel)
        # A step takes at most one unit, so more fuel than steps cannot run out.
        self.plenty = int(rules.fuel_at_start) > int(rules.max_steps)
        fuel = 1 if self.plenty else int(rules.fuel_at_start)
        temperature = int(rules.ignition_temp[x]) if rules.lit_at_start[x] else 0
        self.start = Cell(temperature, fuel if self.uses_fuel else 0)
        self.states = _reached(self.start, self._successors)

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


class _Crew:
    """A single agent."""

    def __init__(self, rules: Rules, n: int) -> None:
        self.rules, self.n = rules, n
        self.start = Agent(
            float(rules.suppressant_at_start[n]),
            float(rules.capacity_at_start),
            int(rules.equipment_at_start),
        )
        self.states = _reached(self.start, self._successors)

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


def _along(values: Iterable[float], axis: int, axes: int) -> np.ndarray:
    """Values of the states of one factor, shaped to be broadcast over all."""
    shape = [1] * axes
    shape[axis] = -1
    return np.asarray(list(values)).reshape(shape)


def _over(rules: Rules, fires: list[_Fire], agents: int) -> np.ndarray:
    """Where nothing burns and, with the fuel rule, nothing is left to burn."""
    axes = len(fires) + agents
    burning, fuel = np.zeros([1] * axes, bool), np.zeros([1] * axes, int)
    for axis, fire in enumerate(fires):
        burning = burning | _along(map(fire.burns, fire.states), axis, axes)
        most = rules.size.shape[0]
        left = (min(cell.fuel, most) for cell in fire.states)
        fuel = fuel + _along(left, axis, axes)
    return ~burning & (fuel <= 0) if rules.uses_fuel else ~burning


def _bonus(rules: Rules, fires: list[_Fire], agents: int) -> np.ndarray | None:
    """What ending the game is worth, by the cells burnt out before."""
    axes = len(fires) + agents
    burnt = np.zeros([1] * axes)
    for axis, fire in enumerate(fires):
        burnt = burnt + _along(map(fire.is_burnt_out, fire.states), axis, axes)
    loss = float(rules.termination_kappa) * np.log(burnt + 1)
    bonus = np.maximum(float(rules.termination_reward) - loss, 0.0)
    return bonus if np.any(bonus) else None


def _ignition(
    rules: Rules, fires: list[_Fire]
) -> Callable[[Float[Array, "*state"]], Float[Array, "*state"]]:
    """The expectation over ignitions, given the cells that burn before them.

    A cell is first told apart by whether it has just ignited. Then the chances of one
    cell after the other are taken; what burnt before stays visible in all the others.
    """
    catching = {x: fire for x, fire in enumerate(fires) if fire.can_catch_fire}

    def settle(values: Float[Array, "*state"]) -> Float[Array, "*state"]:
        axes = values.ndim
        burning = {
            x: _along(map(fire.burns, fire.states), x, axes)
            for x, fire in enumerate(fires)
        }
        for x, fire in catching.items():
            able = [cell for cell in fire.states if fire.can_ignite(cell)]
            after = [*fire.states, *map(fire.ignited, able)]
            values = jnp.take(values, np.asarray([*map(fire.states.index, after)]), x)
            before = [*fire.states, *able]
            burning[x] = _along(map(fire.burns, before), x, axes)
        for x, fire in catching.items():
            states = fire.states
            able = [cell for cell in states if fire.can_ignite(cell)]
            lit = [
                len(states) + able.index(cell) if cell in able else s
                for s, cell in enumerate(states)
            ]
            chance = np.full([1] * axes, float(rules.ignition_probability))
            for side, rate in zip(rules.neighbours[x], rules.spread_rates, strict=True):
                if side != x:
                    chance = chance + float(rate) * burning[int(side)]
            chance = np.clip(chance, 0, 1) * _along(
                (cell in able for cell in states), x, axes
            )
            out = jax.lax.slice_in_dim(values, 0, len(states), axis=x)
            chance = jnp.broadcast_to(jnp.asarray(chance, jnp.float32), out.shape)
            values = out + chance * (jnp.take(values, np.asarray(lit), x) - out)
            burning[x] = _along(map(fire.burns, states), x, axes)
        return values

    return settle
