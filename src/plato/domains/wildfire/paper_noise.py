"""The noise behind the paper's tables, bit for bit.

The released environment replayed one stream in every episode: MT19937, seeded with the
low 32 bits of PyTorch's default seed, each 32-bit output cut to 24 bits. The seed of an
episode drove only the policy; for the rules of thumb a second MT19937.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from plato.domains.wildfire.config import WildfireConfig
from plato.domains.wildfire.dynamics import (
    AGENT_NUMBERS,
    FIELD_NUMBERS,
    WildfireNoise,
    WildfireState,
)
from plato.game import Game, ReplayedNoise
from plato.policies.rules import Preference, RecordedTiesPolicy

STREAM_SEED = 67280421310721 & 0xFFFFFFFF


def with_paper_noise(
    game: Game[WildfireState, Any], config: WildfireConfig
) -> ReplayedNoise[WildfireState]:
    """The same game, meeting the paper's one stream of noise in every episode."""
    cells = config.grid_height * config.grid_width
    team = len(config.agent.agents)
    field_count, agent_count = FIELD_NUMBERS * cells, AGENT_NUMBERS * team
    outputs = mt19937(STREAM_SEED, config.max_steps * (field_count + agent_count))
    numbers = (outputs & 0xFFFFFF).astype(np.float32) / np.float32(2**24)
    per_step = numbers.reshape(config.max_steps, field_count + agent_count)
    field = per_step[:, :field_count].reshape(-1, FIELD_NUMBERS, cells)
    agent = per_step[:, field_count:].reshape(-1, AGENT_NUMBERS, team)

    agents, tasks, _ = game.capacity
    rows = [y * config.grid_width + x for y, x in config.fire_cells]
    record = WildfireNoise(
        field=_padded(np.swapaxes(field[:, :, rows], 1, 2), tasks),
        agent=_padded(np.swapaxes(agent, 1, 2), agents),
    )
    return ReplayedNoise(game, record)


def with_paper_ties(
    prefer: Preference, config: WildfireConfig, seed: int
) -> RecordedTiesPolicy:
    """A rule whose ties an episode's seed breaks as in the released heuristics."""
    draws = mt19937(seed, config.max_steps * len(config.agent.agents))
    return RecordedTiesPolicy(jnp.asarray(draws), prefer)


def mt19937(seed: int, count: int) -> np.ndarray:
    """The first 32-bit outputs of a Mersenne Twister seeded with an integer."""
    full_range = np.random.RandomState(seed).randint
    return full_range(0, 2**32, size=count, dtype=np.uint32)


def _padded(numbers: np.ndarray, rows: int) -> jax.Array:
    spare = rows - numbers.shape[1]
    return jnp.pad(numbers, ((0, 0), (0, spare), (0, 0)), constant_values=1.0)
