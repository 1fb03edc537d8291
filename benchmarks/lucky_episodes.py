"""Searches for lucky episodes: possible ones that return as much as can be found.

    python benchmarks/lucky_episodes.py wildfire-2x3-S2 wildfire-4x4-S2

Fires never grow, always shrink when matched and ignite again at once, which has a
positive probability in the paper's open setups. Each agent fights one cell (or, when
that is out, a second one) and rests in every third step; an evolutionary search chooses
cells and rests. What it finds is attained, so a bound below it bounds nothing.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np

from plato.domains.setups import load_setup
from plato.domains.wildfire.bounds import wildfire_bounds
from plato.domains.wildfire.config import WildfireConfig
from plato.domains.wildfire.dynamics import WildfireNoise
from plato.domains.wildfire.game import Wildfire
from plato.domains.wildfire.limits import limits_of
from plato.game import NOOP

GENERATIONS, ELITE, CHILDREN, MUTATION = 12, 200, 2000, 0.2
STEPS = 100
PERIOD = 3
"""Two fights and a refill, with the paper's tanks."""


def play(game: Wildfire, plan: jax.Array) -> jax.Array:
    """The return of a plan: each agent's first cell, second cell, and step of rest."""
    first, second, rest = plan
    agents, tasks, _ = game.capacity
    noise = WildfireNoise(
        jnp.tile(jnp.array([0.999999, 0.0, 0.0]), (tasks, 1)),
        jnp.tile(jnp.array([0.999999, 0.999999, 0.0, 0.5, 0.5]), (agents, 1)),
    )

    def step(carry, t):
        state, going, team_return = carry
        options = game.observe(state).options[:, :, 0]
        everyone = jnp.arange(agents)
        otherwise = jnp.where(options[everyone, second], second + 1, NOOP)
        fight = jnp.where(options[everyone, first], first + 1, otherwise)
        actions = jnp.where(t % PERIOD == rest, NOOP, fight)
        state, outcome = game.transition(state, actions, noise)
        team_return += jnp.where(going, jnp.mean(outcome.reward), 0.0)
        return (state, going & ~outcome.done, team_return), None

    start = (game.initial(jax.random.key(0)), jnp.array(True), jnp.zeros(()))
    (_, _, team_return), _ = jax.lax.scan(step, start, jnp.arange(STEPS))
    return team_return


play_all = jax.jit(jax.vmap(play, in_axes=(None, 0)))


def luckiest(config: WildfireConfig, seed: int = 0) -> float:
    """The largest return that the search finds."""
    random = np.random.default_rng(seed)
    reach = [np.flatnonzero(agent.fights) for agent in limits_of(config).agents]

    def draw(count: int) -> np.ndarray:
        cells = [[random.choice(cells, count) for cells in reach] for _ in range(2)]
        # A rest in step `PERIOD` of every `PERIOD` is none.
        rests = random.integers(0, PERIOD + 1, (len(reach), count))
        return np.moveaxis(np.array([*cells, rests]), 2, 0)

    game, plans, best = Wildfire.from_config(config), draw(2 * CHILDREN), -np.inf
    for _ in range(GENERATIONS):
        returns = np.asarray(play_all(game, jnp.asarray(plans, jnp.int32)))
        best = max(best, float(returns.max()))
        elite = plans[np.argsort(-returns)[:ELITE]]
        children = elite[random.integers(0, ELITE, CHILDREN)]
        mutates = random.random(children.shape) < MUTATION
        plans = np.concatenate([elite, np.where(mutates, draw(CHILDREN), children)])
    return best


def main(names: list[str]) -> None:
    for name in names:
        config = load_setup(name).config
        bounds = wildfire_bounds(config)
        print(
            f"{name:26} found {luckiest(config):7.2f}"
            f"  paper IP {bounds.upper_program.value:8.2f}"
            f"  paper simple {bounds.upper_simple.value:8.2f}"
            f"  sound {bounds.upper_sound.value:8.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
