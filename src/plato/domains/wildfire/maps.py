"""Other maps than a setup's own: the same one elsewhere, or any at all.

On a map that is turned, mirrored and moved, distances alone decide who reaches what,
and who neighbours whom is kept, so nothing changes but what is observed. A policy that
is trained on many such maps cannot go by where something is, only by how things lie to
each other. On scattered ones everything lies otherwise, some of the team may be missing
and there are other numbers of fires; what is left of the setup is its kinds of them,
and its openness.

Every second game stays at home: what is learned elsewhere must not be lost there. Of
the others, all are moved, or half of them are and half of them scattered, or all
scattered.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from plato.domains.wildfire.config import WildfireConfig
from plato.domains.wildfire.game import Wildfire
from plato.errors import PlatoError
from plato.game import Observation, how_many, stack

ROOM = 6
"""Coordinates end below this, or where a map does that is larger."""
LARGEST = 5
"""Cells of a scattered map, along a side."""
MORE_FIRES = 2
"""That a scattered map may have than there are on the setups trained on."""
MOVED = slice(1, None, 2)
"""Which games of a setup are, unless they are scattered."""
SCATTERED = {"scattered": slice(3, None, 4), "strange": MOVED}
"""Which games of a setup are, by the kind of maps that it shall have."""


def moved(
    games: Wildfire, config: WildfireConfig, random: np.random.Generator
) -> Wildfire:
    """Stacked games of a configuration, those that are MOVED in their own ways."""
    positions, cells = np.array(games.rules.position), np.array(games.rules.cell)
    team, fires = len(config.agent.agents), len(config.fire_cells)
    for agent, cell in zip(positions[MOVED], cells[MOVED], strict=True):
        # Rows beyond are empty.
        places = _laid(np.concatenate([agent[:team], cell[:fires]]), random)
        agent[:team], cell[:fires] = np.split(places, [team])
    places = (jnp.asarray(positions), jnp.asarray(cells))
    return eqx.tree_at(lambda g: (g.rules.position, g.rules.cell), games, places)


def scattered(
    games: Wildfire,
    config: WildfireConfig,
    random: np.random.Generator,
    which: slice = SCATTERED["scattered"],
) -> Wildfire:
    """Stacked games of a configuration, some of them scattered on their own maps with
    its team or a smaller one, and as many fires as there is room for, or fewer."""
    agents, tasks, _ = games.capacity
    team = len(config.agent.agents)
    others = [
        Wildfire.from_config(
            scattered_config(config, team, tasks, random), agents=agents, tasks=tasks
        )
        for _ in range(how_many(games))[which]
    ]
    if not others:
        return games
    return jax.tree.map(
        lambda all_of, some: all_of.at[which].set(some), games, stack(others)
    )


def scattered_config(
    config: WildfireConfig, agents: int, fires: int, random: np.random.Generator
) -> WildfireConfig:
    """A configuration with at most so many agents and fires, each like one that there
    was, anywhere on a grid that has room for them; all agents reach a fire.

    Of each there are at least two, unless there shall be at most one.
    """
    there, team = config.fire_cells, config.agent
    if not there:
        raise PlatoError(
            "A setup without fires has none to scatter; place one in fire.fire_types."
        )
    fires = min(fires, LARGEST**2)  # no grid has room for more
    count, height, width = _at_most(fires, random), 0, 0
    while height * width < count:
        height, width = random.integers(2, LARGEST, size=2, endpoint=True).tolist()
    chosen = random.choice(height * width, size=count, replace=False)
    cells = [divmod(i, width) for i in chosen.tolist()]
    like = [there[i] for i in random.integers(len(there), size=count)]

    def grid(
        values: Sequence[Sequence[Any]], empty: Any
    ) -> tuple[tuple[Any, ...], ...]:
        rows = [[empty] * width for _ in range(height)]
        for (y, x), (from_y, from_x) in zip(cells, like, strict=True):
            rows[y][x] = values[from_y][from_x]
        return tuple(map(tuple, rows))

    who = random.integers(len(team.agents), size=_at_most(agents, random))
    places = [
        _within(
            team.attack_range[i], cells[random.integers(count)], (height, width), random
        )
        for i in who
    ]
    return replace(
        config,
        grid_height=height,
        grid_width=width,
        fire=replace(
            config.fire,
            fire_types=grid(config.fire.fire_types, 0),
            lit=grid(config.fire.lit, False),
            ignition_temp=grid(config.fire.ignition_temp, 1),
        ),
        agent=replace(
            team,
            agents=tuple(places),
            fire_reduction_power=tuple(team.fire_reduction_power[i] for i in who),
            attack_range=tuple(team.attack_range[i] for i in who),
            initial_suppressant=tuple(team.initial_suppressants[i] for i in who),
        ),
        reward=replace(
            config.reward, fire_rewards=grid(config.reward.fire_rewards, 0.0)
        ),
    )


def _at_most(most: int, random: np.random.Generator) -> int:
    """How many there are of something."""
    return int(random.integers(min(2, most), most, endpoint=True))


def _within(
    reach: int, of: tuple[int, int], size: tuple[int, int], random: np.random.Generator
) -> tuple[int, int]:
    """A cell of the grid from which another one is reached."""
    lowest = np.maximum(np.subtract(of, reach), 0)
    highest = np.minimum(np.add(of, reach), np.subtract(size, 1))
    y, x = random.integers(lowest, highest, endpoint=True)
    return int(y), int(x)


def seen_at(home: Wildfire, seen: Observation) -> Observation:
    """What would be seen at the same moment on the map that `home` has."""
    places, cells = home.rules.position, home.rules.cell
    return eqx.tree_at(
        lambda o: (o.agents, o.tasks),
        seen,
        (seen.agents.at[:, :2].set(places), seen.tasks.at[:, :2].set(cells)),
    )


def _laid(
    places: Float[np.ndarray, "place 2"], random: np.random.Generator
) -> Float[np.ndarray, "place 2"]:
    """One of the eight ways to turn and mirror them, moved to somewhere in the room."""
    places = places * random.choice([-1.0, 1.0], size=2)
    if random.random() < 0.5:
        places = places[:, ::-1]
    places = places - places.min(axis=0)
    free = np.maximum(ROOM - 1 - places.max(axis=0), 0)
    return places + random.integers(0, free.astype(int), endpoint=True)
