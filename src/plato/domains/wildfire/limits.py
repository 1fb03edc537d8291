"""What a configuration allows at most: who can reach what, how hard, how often.

Every number here errs on the generous side, so that a bound built on it holds. Sums and
comparisons that the dynamics make in single precision are made, or rounded up, so here.
"""

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from plato.domains.wildfire.config import AgentConfig, WildfireConfig
from plato.domains.wildfire.odds import Odds, odds_in_force

AROUND = ((-1, 0), (0, 1), (1, 0), (0, -1))
"""North, east, south, west, the order of `Odds.spread`."""

Neighbours: TypeAlias = tuple[tuple[int, int], ...]
"""Rows of cells, each with the side it is on."""


@dataclass(frozen=True)
class CellLimits:
    """One cell that can burn."""

    size: int
    ignition: int
    lit: bool
    putout: float
    """What putting it out pays."""
    burnout: float
    """What its burnout pays (usually less than nothing)."""
    crew: tuple[int, ...]
    """The agents that can ever fight it."""
    least_crew: int
    """How few of them can match its size; 0: all together cannot."""
    neighbours: Neighbours
    """The cells it can catch fire from."""
    unlit_steps: int
    """Steps that begin before it can first burn; beyond the horizon: it never can."""
    lives: int
    """How often it can begin to burn, the first time included."""
    never_spent: bool
    """Its fuel lasts for as many put-outs as an episode has room for."""


@dataclass(frozen=True)
class AgentLimits:
    """One agent."""

    power: float
    start: int
    """Fights before the first refill."""
    fights_per_refill: int
    fights: tuple[bool, ...]
    """The cells it can ever fight."""
    errs: bool
    """It can be offered a fire that is out of its reach."""


@dataclass(frozen=True)
class Limits:
    """A configuration, as far as bounds need to know it."""

    horizon: int
    cells: tuple[CellLimits, ...]
    agents: tuple[AgentLimits, ...]
    last: int
    """The last intensity before burnout."""
    odds: Odds


def limits_of(config: WildfireConfig) -> Limits:
    """Reads the limits out of a configuration."""
    odds = odds_in_force(config)
    agents = tuple(_agent(config, odds, n) for n in range(len(config.agent.agents)))
    neighbours = _neighbours(config, odds)
    unlit_steps = _unlit_steps(config, odds, neighbours)
    cells = tuple(
        _cell(config, odds, agents, neighbours[x], unlit_steps, x)
        for x in range(len(config.fire_cells))
    )
    last = config.fire.num_fire_states - 2
    return Limits(config.max_steps, cells, agents, last, odds)


def equipment_in_play(agent: AgentConfig, odds: Odds) -> set[int]:
    """The equipment states that can occur from the initial one on."""
    pristine = len(agent.equipment_states) - 1
    seen, new = set(), {agent.initial_equipment_state}
    while new:
        level = new.pop()
        seen.add(level)
        after = set()
        if level == 0 and odds.repair > 0:
            after.add(pristine)
        if level > 0 and odds.degrade > 0:
            after.add(level - 1)
        if level == pristine and odds.critical > 0:
            after.add(0)
        new |= after - seen
    return seen


def _agent(config: WildfireConfig, odds: Odds, n: int) -> AgentLimits:
    agent = config.agent
    rows = [agent.equipment_states[level] for level in equipment_in_play(agent, odds)]
    capacity, power, longest = (max(column) for column in zip(*rows, strict=True))
    fill = max(_capacities(agent, odds)) + capacity
    start = agent.initial_suppressants[n]
    # A unit that is only partly there still serves for a fight.
    fights_per_refill = max(math.ceil(fill), 0) if odds.refill > 0 else 0
    armed = start > 0 or fights_per_refill > 0
    most = np.float32(agent.fire_reduction_power[n]) + np.float32(power)
    shortest = min(row[2] for row in rows)
    return AgentLimits(
        power=_summable(max(float(most), 0.0), len(agent.agents)),
        start=start,
        fights_per_refill=fights_per_refill,
        fights=tuple(armed and near for near in _reach(config, n, longest)),
        errs=armed and config.show_bad_actions and not all(_reach(config, n, shortest)),
    )


def _reach(config: WildfireConfig, agent: int, bonus: float) -> list[bool]:
    y, x = config.agent.agents[agent]
    most = float(np.float32(config.agent.attack_range[agent]) + np.float32(bonus))
    return [max(abs(y - v), abs(x - u)) <= most for v, u in config.fire_cells]


def _summable(power: float, agents: int) -> float:
    """Single-precision sums of such powers do not exceed the sum of these."""
    exact = (power * 1024).is_integer() and power * agents < 2**13
    return power if exact else power * (1 + 1e-7 * (agents + 1))


def _capacities(agent: AgentConfig, odds: Odds) -> list[float]:
    """The tanks an agent can have after a refill."""
    capacities = [float(agent.initial_capacity)] if odds.switch < 1 else []
    if odds.switch > 0:
        below, last = -1.0, len(agent.possible_capacities) - 1
        # As the dynamics draw: number 0 takes the first, whatever its probability, and
        # a sum that rounds to less than 1 leaves the rest to the last.
        cumulative = np.cumsum(agent.capacity_probabilities, dtype=np.float32)
        for i, (tank, upto) in enumerate(
            zip(agent.possible_capacities, cumulative.tolist(), strict=True)
        ):
            if below < min(upto, 1.0) or (i == last and upto < 1):
                capacities.append(float(tank))
            below = max(below, upto)
    return capacities


def _cell(
    config: WildfireConfig,
    odds: Odds,
    agents: tuple[AgentLimits, ...],
    neighbours: Neighbours,
    unlit_steps: list[int],
    index: int,
) -> CellLimits:
    fire, reward, horizon = config.fire, config.reward, config.max_steps
    y, x = config.fire_cells[index]
    size, ignition = fire.fire_types[y][x], fire.ignition_temp[y][x]
    putout = float(reward.fire_rewards[y][x])
    crew = tuple(n for n, agent in enumerate(agents) if agent.fights[index])
    fuelled = config.stochastic.fire_fuel
    rekindles = odds.ignition > 0 or len(neighbours) > 0
    lives = int(unlit_steps[index] <= horizon)
    if lives and rekindles:
        lives += (horizon - unlit_steps[index]) // ignition
    if fuelled:
        # A lit cell needs none for its first life; every later one is paid for.
        lives = min(lives, max(fire.initial_fuel, int(fire.lit[y][x])))
    return CellLimits(
        size=size,
        ignition=ignition,
        lit=fire.lit[y][x],
        putout=putout,
        burnout=-putout if reward.burnout_penalty_scaled else reward.burnout_penalty,
        crew=crew,
        least_crew=_least_crew(size, [agents[n].power for n in crew]),
        neighbours=neighbours,
        unlit_steps=unlit_steps[index],
        lives=lives,
        never_spent=not fuelled or fire.initial_fuel > horizon // ignition,
    )


def _least_crew(size: int, powers: list[float]) -> int:
    power = 0.0
    for count, strongest in enumerate(sorted(powers, reverse=True), start=1):
        power += strongest
        if power >= size:
            return count
    return 0


def _neighbours(config: WildfireConfig, odds: Odds) -> list[Neighbours]:
    row = {cell: i for i, cell in enumerate(config.fire_cells)}
    around = [(s, *AROUND[s]) for s, rate in enumerate(odds.spread) if rate > 0]
    return [
        tuple(
            (row[y + dy, x + dx], side)
            for side, dy, dx in around
            if (y + dy, x + dx) in row
        )
        for y, x in config.fire_cells
    ]


def _unlit_steps(
    config: WildfireConfig, odds: Odds, neighbours: list[Neighbours]
) -> list[int]:
    """Steps that begin before each cell can first burn: fire moves a cell a step."""
    fire = config.fire
    never = config.max_steps + 1
    steps = [0 if fire.lit[y][x] else never for y, x in config.fire_cells]
    if config.stochastic.fire_fuel and fire.initial_fuel == 0:
        return steps
    if odds.ignition > 0:
        return [min(1, s) for s in steps]
    for now in range(1, never):
        # Whom a cell lights is, under wind, not who lights it: look from the unlit.
        new = [
            i
            for i, s in enumerate(steps)
            if s == never and any(steps[j] < now for j, _ in neighbours[i])
        ]
        if not new:
            break
        for i in new:
            steps[i] = now
    return steps
