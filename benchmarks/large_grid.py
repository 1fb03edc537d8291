"""A large random wildfire setup, for measuring how the cost of a step grows."""

from dataclasses import replace

import numpy as np

from plato.domains.setups import load_setup
from plato.domains.wildfire.config import WildfireConfig


def large_config(side: int, agents: int, seed: int) -> WildfireConfig:
    """The rules of 3x3 S3 on a square grid where every cell can burn, half do."""
    base = load_setup("wildfire-3x3-S3").config
    random = np.random.default_rng(seed)
    types = random.integers(1, 4, (side, side))
    lit = random.random((side, side)) < 0.5
    temps = random.integers(1, base.fire.num_fire_states - 1, (side, side))
    places = random.integers(0, side, (agents, 2))

    def rows(grid: np.ndarray) -> tuple:
        return tuple(tuple(row) for row in grid.tolist())

    return replace(
        base,
        grid_height=side,
        grid_width=side,
        fire=replace(
            base.fire,
            fire_types=rows(types),
            lit=rows(lit),
            ignition_temp=rows(temps),
        ),
        agent=replace(
            base.agent,
            agents=rows(places),
            fire_reduction_power=tuple(random.integers(1, 4, agents) * 1.0),
            attack_range=tuple(random.integers(1, 6, agents).tolist()),
            initial_suppressant=2,
        ),
        reward=replace(base.reward, fire_rewards=rows(2.0**types)),
        description=f"{side}×{side} grid, {agents} agents",
        evidence="",
    )
