"""Bounds that hold for the environment as it is: what an episode's counts must obey.

Count what happens in an episode: put-outs, burnouts and ignitions of each cell, steps
in which it was matched, fights and refills of each agent, … The rules tie these counts
together by linear inequalities, and the return is linear in them, so the best and the
worst whole numbers that obey them bound the return of every episode. Replace each count
by its expectation and the same inequalities hold with the probabilities themselves in
place of "possible" and "certain", which bounds the mean return of every policy.
`docs/bounds.md` proves each line.
"""

import math
from dataclasses import dataclass, replace

from plato.domains.wildfire.config import RewardConfig, WildfireConfig
from plato.domains.wildfire.integer_program import (
    NOTHING,
    Linear,
    Maximum,
    Program,
    total,
)
from plato.domains.wildfire.limits import CellLimits, Limits, limits_of
from plato.domains.wildfire.odds import Odds


@dataclass(frozen=True)
class CellCounts:
    """What is counted of one cell."""

    putouts: Linear
    burnouts: Linear
    ignitions: Linear
    matched: Linear
    """Steps in which it burnt and was fought with at least its size."""
    growing: Linear
    """Steps in which it burnt unmatched, below the last intensity."""
    glowing: Linear
    """Steps in which it burnt unmatched at the last intensity."""
    out: Linear
    """Steps that began with it out."""
    fights: dict[int, Linear]
    """For each agent, its fights in the matched steps."""
    shares: Linear
    """Agents that fought it when it was put out, summed over its put-outs."""

    @property
    def chances(self) -> Linear:
        """Times it was out when fires spread: from before, or put out just now."""
        return self.putouts + self.out

    @property
    def spreading(self) -> Linear:
        """Steps in which it burnt when fires spread."""
        burning = self.matched + self.growing + self.glowing
        return burning - self.putouts - self.burnouts


@dataclass(frozen=True)
class Tally:
    """The counts of an episode as variables of a program that relates them."""

    program: Program
    cells: tuple[CellCounts, ...]
    errors: Linear
    """Fights out of reach, of all agents."""
    ended: Linear
    """1 if the game ended before the time limit or with it."""


def upper_bound(config: WildfireConfig, mean: bool, time_limit: float) -> Maximum:
    """No episode returns more; with `mean`, no policy does on average."""
    limits = limits_of(config)
    tally = count(config, limits, mean)
    bonus = _largest_bonus(config.reward, len(limits.cells))
    objective = _team_return(config, limits, tally) + bonus * tally.ended
    known = tally.program.maximum(objective, time_limit)
    most = sum(_most_of(cell) for cell in limits.cells) + bonus
    most += limits.horizon * max(config.reward.bad_attack_penalty, 0.0)
    return replace(known, at_most=min(known.at_most, most))


def lower_bound(config: WildfireConfig, mean: bool, time_limit: float) -> Maximum:
    """No episode returns less than minus this; with `mean`, no policy on average."""
    limits = limits_of(config)
    tally = count(config, limits, mean)
    # The bonus for ending a game is never below 0: at worst it is not there.
    objective = -1.0 * _team_return(config, limits, tally)
    known = tally.program.maximum(objective, time_limit)
    most = sum(_most_of(cell, -1.0) for cell in limits.cells)
    most += limits.horizon * max(-config.reward.bad_attack_penalty, 0.0)
    return replace(known, at_most=min(known.at_most, most))


def count(config: WildfireConfig, limits: Limits, mean: bool) -> Tally:
    """The counts of an episode, or their means, and all that ties them together."""
    program = Program(whole=not mean)
    least, most = _range(limits.odds, mean)
    ended = program.variable(1)
    missing = program.variable(limits.horizon - 1)  # steps after the end
    program.at_most(missing - limits.horizon * ended, 0)
    cells = tuple(
        _count_cell(program, limits, cell, missing, least, most)
        for cell in limits.cells
    )
    for cell, counts in zip(limits.cells, cells, strict=True):
        _relate_ignitions(program, cell, counts, cells, least, most)
        if config.stochastic.fire_fuel and cell.never_spent:
            # Fuel is left, so the game is not over, until the cell has burnt out.
            program.at_most(ended - counts.burnouts, 0)
    errors = _count_agents(program, limits, cells, missing, least, most)
    return Tally(program, cells, errors, ended)


def _count_cell(
    program: Program,
    limits: Limits,
    cell: CellLimits,
    missing: Linear,
    least: Odds,
    most: Odds,
) -> CellCounts:
    horizon, last = limits.horizon, limits.last
    room = max(horizon - cell.unlit_steps, 0)
    matchable = room if cell.least_crew else 0
    counts = CellCounts(
        putouts=program.variable(min(cell.lives, matchable // cell.ignition)),
        burnouts=program.variable(min(cell.lives, 1)),
        ignitions=program.variable(max(cell.lives - cell.lit, 0)),
        matched=program.variable(matchable),
        growing=program.variable(room),
        glowing=program.variable(room),
        out=program.variable(horizon),
        fights={n: program.variable(matchable) for n in cell.crew},
        shares=program.variable(len(cell.crew) * horizon),
    )
    burnt = program.variable(horizon)  # steps that began with it burnt out
    alight = program.variable(1)  # at the end
    intensity = program.variable(last)  # at the end, if alight
    grown = program.variable(horizon)  # below the last intensity
    shrunk = program.variable(horizon)

    # Every life ends in a put-out, a burnout or with the episode.
    lives = counts.putouts + counts.burnouts + alight
    program.equal(lives - counts.ignitions, cell.lit)
    program.at_most(lives, cell.lives)
    # Every step finds the cell in one condition.
    burning = counts.matched + counts.growing + counts.glowing
    program.equal(burning + counts.out + burnt + missing, horizon)
    program.at_least(counts.out + missing, horizon - room)
    program.at_most(burnt - horizon * counts.burnouts, 0)
    # Intensity: what was lit and grew has shrunk, burnt out, or is still there.
    balance = cell.ignition * counts.ignitions + grown - shrunk
    balance -= last * counts.burnouts + intensity
    program.equal(balance, -cell.ignition * cell.lit)
    program.at_least(intensity - alight, 0)
    program.at_most(intensity - last * alight, 0)
    program.at_least(shrunk - cell.ignition * counts.putouts, 0)
    _between(program, grown, counts.growing, least.growth, most.growth)
    _between(program, counts.burnouts, counts.glowing, least.burnout, most.burnout)

    _relate_fights(program, limits, cell, counts, shrunk, most)
    return counts


def _relate_fights(
    program: Program,
    limits: Limits,
    cell: CellLimits,
    counts: CellCounts,
    shrunk: Linear,
    most: Odds,
) -> None:
    crew = total(list(counts.fights.values()))
    power = total([limits.agents[n].power * f for n, f in counts.fights.items()])
    program.at_least(power - cell.size * counts.matched, 0)
    program.at_least(crew - cell.least_crew * counts.matched, 0)
    for fights in counts.fights.values():
        program.at_most(fights - counts.matched, 0)
    # A matched step shrinks the fire by at most one, and no likelier than its power
    # makes it.
    program.at_most(shrunk - counts.matched, 0)
    excess = power - cell.size * counts.matched
    likely = most.suppression * counts.matched + most.suppression_bonus * excess
    program.at_most(shrunk - likely, 0)
    # Who shares a put-out fought its last step; the steps before it had crews as well.
    before = cell.least_crew * (cell.ignition - 1)
    program.at_most(counts.shares - len(cell.crew) * counts.putouts, 0)
    program.at_most(counts.shares + before * counts.putouts - crew, 0)


def _relate_ignitions(
    program: Program,
    cell: CellLimits,
    counts: CellCounts,
    cells: tuple[CellCounts, ...],
    least: Odds,
    most: Odds,
) -> None:
    chances = counts.chances
    program.at_most(counts.ignitions - chances, 0)
    caught = NOTHING
    for neighbour, side in cell.neighbours:
        together = program.variable()  # it is out while the neighbour burns
        program.at_most(together - chances, 0)
        program.at_most(together - cells[neighbour].spreading, 0)
        caught += most.spread[side] * together
    program.at_most(counts.ignitions - most.ignition * chances - caught, 0)
    if cell.never_spent:
        program.at_least(counts.ignitions - least.ignition * chances, 0)


def _count_agents(
    program: Program,
    limits: Limits,
    cells: tuple[CellCounts, ...],
    missing: Linear,
    least: Odds,
    most: Odds,
) -> Linear:
    """Each agent does one thing in a step; returns the number of their errors."""
    every_error = []
    for n, agent in enumerate(limits.agents):
        fights = total([cell.fights[n] for cell in cells if n in cell.fights])
        noops = program.variable(limits.horizon)
        refills = program.variable(limits.horizon)
        errors = program.variable(limits.horizon if agent.errs else 0)
        program.at_most(fights + noops + errors + missing, limits.horizon)
        program.at_most(refills - most.refill * noops, 0)
        used = least.use * fights
        program.at_most(used - agent.fights_per_refill * refills, agent.start)
        every_error.append(errors)
    return total(every_error)


def _between(
    program: Program, events: Linear, trials: Linear, least: float, most: float
) -> None:
    """Of so many trials, so many succeed."""
    program.at_least(events - least * trials, 0)
    program.at_most(events - most * trials, 0)


def _range(odds: Odds, mean: bool) -> tuple[Odds, Odds]:
    """How often, of the times it can, an event happens: at least, and at most.

    On average as often as its probability says; in one episode anything from never to
    always, unless the probability is 1 or 0.
    """
    north, east, south, west = (min(rate, 1.0) for rate in odds.spread)
    # A bonus below 0 only ever lowers the probability.
    bonus = max(odds.suppression_bonus, 0.0)
    most = replace(odds, spread=(north, east, south, west), suppression_bonus=bonus)
    if mean:
        return odds, most
    north, east, south, west = (_possible(rate) for rate in odds.spread)
    return (
        replace(
            odds,
            growth=_certain(odds.growth),
            burnout=_certain(odds.burnout),
            ignition=_certain(odds.ignition),
            use=_certain(odds.use),
        ),
        replace(
            odds,
            growth=_possible(odds.growth),
            burnout=_possible(odds.burnout),
            suppression=_possible(odds.suppression + bonus),
            suppression_bonus=0.0,
            spread=(north, east, south, west),
            ignition=_possible(odds.ignition),
            refill=_possible(odds.refill),
        ),
    )


def _possible(probability: float) -> float:
    return float(probability > 0)


def _certain(probability: float) -> float:
    return float(probability >= 1)


def _team_return(config: WildfireConfig, limits: Limits, tally: Tally) -> Linear:
    """The mean of the agents' rewards, but for the bonus of ending the game."""
    reward, agents = config.reward, len(limits.agents)
    parts = [(reward.bad_attack_penalty / agents) * tally.errors]
    for cell, counts in zip(limits.cells, tally.cells, strict=True):
        if reward.localize_putouts:
            parts.append((cell.putout / agents) * counts.shares)
        else:
            parts.append(cell.putout * counts.putouts)
        parts.append(cell.burnout * counts.burnouts)
    return total(parts)


def _largest_bonus(reward: RewardConfig, cells: int) -> float:
    """What ending a game can be worth: after no burnout, or (kappa < 0) after all."""
    after_all = reward.termination_reward - reward.termination_kappa * math.log1p(cells)
    return max(reward.termination_reward, after_all, 0.0)


def _most_of(cell: CellLimits, sign: float = 1.0) -> float:
    """What a cell can be worth at most, whoever fights it (-1: what it can cost)."""
    burns = min(cell.lives, 1)
    return cell.lives * max(sign * cell.putout, 0) + burns * max(sign * cell.burnout, 0)
