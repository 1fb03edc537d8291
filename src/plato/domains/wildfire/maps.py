"""The same game on a map that lies elsewhere: turned, mirrored and moved.

Distances alone decide who reaches what, and who neighbours whom is kept, so nothing
changes but what is observed. A policy that is trained on many such maps cannot go by
where something is, only by how things lie to each other.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from plato.domains.wildfire.config import WildfireConfig
from plato.domains.wildfire.game import Wildfire
from plato.game import Observation

ROOM = 6
"""Coordinates end below this, or where a map does that is larger."""


def laid_anew(
    games: Wildfire, config: WildfireConfig, random: np.random.Generator
) -> Wildfire:
    """Stacked games of a configuration, every second one on its own map of all that it
    could be: what is learned there must not be lost at home."""
    positions, cells = np.array(games.rules.position), np.array(games.rules.cell)
    team, fires = len(config.agent.agents), len(config.fire_cells)
    for agent, cell in zip(positions[1::2], cells[1::2], strict=True):
        # Rows beyond are empty.
        places = _laid(np.concatenate([agent[:team], cell[:fires]]), random)
        agent[:team], cell[:fires] = np.split(places, [team])
    places = (jnp.asarray(positions), jnp.asarray(cells))
    return eqx.tree_at(lambda g: (g.rules.position, g.rules.cell), games, places)


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
