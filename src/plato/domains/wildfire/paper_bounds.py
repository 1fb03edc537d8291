"""The bounds of the paper's appendix ("Reward bounds in Wildfire"), as printed.

They are formulas to compare with, not theorems about this environment: `docs/bounds.md`
says where they fail and lists what the text leaves open and what was chosen here.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

from plato.domains.wildfire.integer_program import (
    INFINITY,
    Linear,
    Maximum,
    Program,
    total,
)
from plato.domains.wildfire.limits import CellLimits, Limits

LARGEST_PROGRAM = 100_000
"""Variables beyond which the integer program is not even written down."""


def lower_bound(limits: Limits) -> float:
    """⌊h / (int₀ + 1)⌋ · Σ r_burnout, each cell with its own int₀."""
    return sum(
        (limits.horizon // (cell.ignition + 1) * cell.burnout for cell in limits.cells),
        0.0,
    )


def simple_upper_bound(limits: Limits) -> float:
    """h / int₀ · r_putout · min(|N|, ⌈unique reachable fires / 2⌉).

    Where cells differ, r / int₀ is that of the cell where it is largest.
    """
    reachable = [cell for cell in limits.cells if cell.crew]
    if not reachable:
        return 0.0
    rate = max(cell.putout / cell.ignition for cell in reachable)
    at_once = min(len(limits.agents), math.ceil(len(reachable) / 2))
    return limits.horizon * rate * at_once


@dataclass(frozen=True)
class Cycles:
    """The integer program: which cells are completed by whom in which cycle."""

    program: Program
    completed: dict[tuple[int, int], Linear]
    """For cell x and cycle c: f."""


def program_upper_bound(limits: Limits, fuel: int | None, time_limit: float) -> Maximum:
    """Σ f · r · ρ of the program's best cycles; `fuel` is None where it is not used.

    The program maximises Σ f · r and repetitions are counted afterwards; among
    solutions that are equally good for it, the one whose repetitions are worth most is
    taken, so that the answer does not depend on the solver.
    """
    reachable = [x for x, cell in enumerate(limits.cells) if cell.crew]
    cycles = max((sum(agent.fights) for agent in limits.agents), default=0)
    repeats = {
        (x, c): times
        for x in reachable
        for c, times in enumerate(repetitions(limits, limits.cells[x], fuel, cycles))
    }
    # Without its constraints the program would complete every cell in every cycle.
    worth = (max(limits.cells[x].putout, 0.0) * n for (x, _), n in repeats.items())
    unconstrained = float(sum(worth))
    pairs = sum(len(limits.cells[x].crew) for x in reachable)
    if cycles * (pairs + len(reachable)) > LARGEST_PROGRAM:
        return Maximum(unconstrained, -INFINITY, finished=False)
    plan = write_cycles(limits, cycles)
    completed = {
        key: limits.cells[key[0]].putout * f for key, f in plan.completed.items()
    }
    first = total(list(completed.values()))
    best = plan.program.maximum(first, time_limit)
    # If the time was up, no solution that may be the best is left out; and what is the
    # same sum in another order may differ in the last digits.
    plan.program.at_least(first, max(best.found, 0.0) * (1 - 1e-9) - 1e-9)
    repeated = total([float(repeats[key]) * f for key, f in completed.items()])
    answer = plan.program.maximum(repeated, time_limit)
    at_most = min(answer.at_most, unconstrained)
    return Maximum(at_most, answer.found, best.finished and answer.finished)


def write_cycles(limits: Limits, cycles: int) -> Cycles:
    """Constraints (3) to (6) as printed, for the cells that somebody reaches."""
    program = Program(whole=True)
    agents = range(len(limits.agents))
    reachable = [x for x, cell in enumerate(limits.cells) if cell.crew]
    completed = {(x, c): program.variable(1) for x in reachable for c in range(cycles)}
    works = {
        (n, x, c): program.variable(1)
        for x in reachable
        for n in limits.cells[x].crew
        for c in range(cycles)
    }
    of_agent = {n: [x for x in reachable if n in limits.cells[x].crew] for n in agents}
    for (x, c), f in completed.items():  # (3) enough agents, one for each unit of size
        crew = total([works[n, x, c] for n in limits.cells[x].crew])
        program.equal(crew - float(limits.cells[x].size) * f, 0)
    for n in agents:
        sizes = [
            total([float(limits.cells[x].size) * works[n, x, c] for x in of_agent[n]])
            for c in range(cycles)
        ]
        for now, following in pairwise(sizes):  # (4) never larger
            program.at_least(now - following, 0)
        for x in of_agent[n]:  # (5) each fire in one cycle of an agent
            program.at_most(total([works[n, x, c] for c in range(cycles)]), 1)
        for c in range(cycles):  # (6) one fire in a cycle
            program.at_most(total([works[n, x, c] for x in of_agent[n]]), 1)
    return Cycles(program, completed)


def repetitions(
    limits: Limits, cell: CellLimits, fuel: int | None, cycles: int
) -> list[int]:
    """ρ: how often each cycle pays, from what the cycles before it have left."""
    left = limits.horizon // cell.ignition
    times = []
    for _ in range(cycles):
        times.append(left if fuel is None else min(fuel, left))
        left -= times[-1]
    return times
