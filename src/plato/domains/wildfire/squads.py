"""Which crews there are, and the joint choices that are weighed: made once, in NumPy.

A team whose joint choices are few is one squad. A larger one is cut into squads, each
of agents that share fires.
"""

import itertools
import math
from typing import NamedTuple, TypeAlias

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from plato.domains.wildfire.crews import NOBODY, Crews, Sizes
from plato.domains.wildfire.dynamics import Rules
from plato.game import NOOP

LARGEST_SQUAD = 1024
"""Joint choices of a squad."""
LARGEST_CREW = 4
LARGEST_TABLE = 2**24
"""Numbers in a table of values; crews are kept smaller where theirs would not fit."""

Reach: TypeAlias = Bool[np.ndarray, "agent task"]


class Squads(eqx.Module):
    """Agents that choose together, and all that they can choose."""

    members: Int[Array, "squad member"]
    """Rows of agents; one beyond the last where a squad is smaller."""
    choices: Int[Array, "squad joint member"]
    """Of each of them, as an action: a fire to fight, or to belong to, or NOOP."""
    crews: Int[Array, "squad joint task"]
    """The crew that each fire gets by that; NOBODY if it would be too large a one."""


class Divisions(NamedTuple):
    """Everything that a planner chooses among."""

    crews: Crews
    squads: Squads
    unattended: Int[Array, " task"]
    """Of each fire, the crew without members."""


def divisions(rules: Rules, sizes: Sizes) -> Divisions:
    """All crews and joint choices of a team."""
    reach = _reach(rules)
    squads = _cut(reach)
    largest = _largest_crew(reach, squads, sizes)
    crews = [(fire, ()) for fire in range(reach.shape[1])]
    for squad in squads:
        for fire in range(reach.shape[1]):
            near = [n for n in squad if reach[n, fire]]
            for size in range(1, largest + 1):
                crews += [(fire, c) for c in itertools.combinations(near, size)]
    members = [[*crew, *[NOBODY] * (largest - len(crew))] for _, crew in crews]
    return Divisions(
        Crews(
            jnp.asarray([fire for fire, _ in crews], jnp.int32),
            jnp.asarray(members, jnp.int32),
        ),
        _enumerate(reach, squads, {crew: row for row, crew in enumerate(crews)}),
        jnp.arange(reach.shape[1]),
    )


def _reach(rules: Rules) -> Reach:
    """The cells that agents could ever fight, with the best equipment."""
    best = np.asarray(rules.equipment_bonus)[:, 2].max()
    position, cell = np.asarray(rules.position), np.asarray(rules.cell)
    distance = np.abs(position[:, None, :] - cell[None, :, :]).max(axis=2)
    near = distance <= (np.asarray(rules.reach) + best)[:, None]
    return near & np.asarray(rules.roster)[:, None] & (np.asarray(rules.size) > 0)


def _cut(reach: Reach) -> list[list[int]]:
    """Squads: as long as their joint choices are few enough, the agent joins that
    shares most fires with those who are in."""
    options = 1 + reach.sum(axis=1)
    waiting = list(range(len(reach)))
    squads = []
    while waiting:
        squad = [waiting.pop(0)]
        while waiting:
            known = reach[squad].any(axis=0)
            nearest = max(waiting, key=lambda n: int((reach[n] & known).sum()))
            if math.prod(int(n) for n in options[[*squad, nearest]]) > LARGEST_SQUAD:
                break
            waiting.remove(nearest)
            squad.append(nearest)
        squads.append(sorted(squad))
    return squads


def _largest_crew(reach: Reach, squads: list[list[int]], sizes: Sizes) -> int:
    """As many as reach one fire, if the table of values has room."""
    near = np.concatenate([reach[squad].sum(axis=0) for squad in squads])

    def entries(members: int) -> int:
        crews = sum(math.comb(int(n), k) for n in near for k in range(members + 1))
        rows = (sizes.steps + 1) * (sizes.burnt_out + 1)
        return rows * crews * sizes.levels**members

    most = min(int(near.max()), LARGEST_CREW)
    fitting = [k for k in range(2, most + 1) if entries(k) <= LARGEST_TABLE]
    return max(fitting, default=1)


def _enumerate(
    reach: Reach, squads: list[list[int]], rows: dict[tuple[int, tuple[int, ...]], int]
) -> Squads:
    agents, tasks = reach.shape
    most = max(map(len, squads))
    members, choices, crews = [], [], []
    for squad in squads:
        options = [[NOOP, *(np.flatnonzero(reach[n]) + 1).tolist()] for n in squad]
        joint = list(itertools.product(*options))
        spare = most - len(squad)
        members.append(squad + [agents] * spare)
        choices.append([[*choice, *[NOOP] * spare] for choice in joint])
        crews.append(
            [
                [rows.get((f, _crew(squad, choice, f)), NOBODY) for f in range(tasks)]
                for choice in joint
            ]
        )
    # Squads are scanned, so all have as many rows: their first, NOOP for all, again.
    longest = max(map(len, choices))
    for table in (*choices, *crews):
        table += table[:1] * (longest - len(table))
    return Squads(
        jnp.asarray(members, jnp.int32),
        jnp.asarray(choices, jnp.int32),
        jnp.asarray(crews, jnp.int32),
    )


def _crew(squad: list[int], choice: tuple[int, ...], fire: int) -> tuple[int, ...]:
    chosen = zip(squad, choice, strict=True)
    return tuple(agent for agent, action in chosen if action == fire + 1)
