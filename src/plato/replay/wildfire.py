"""What is wildfire's in a replay: how fires change, and what a page draws of them."""

from typing import Any

import numpy as np
from jaxtyping import Bool

from plato.domains.wildfire.config import WildfireConfig
from plato.domains.wildfire.dynamics import Rules, WildfireState
from plato.domains.wildfire.game import rules_from_config
from plato.replay.events import Events, agent_changes, listed
from plato.replay.recording import Recording

Changes = dict[str, Bool[np.ndarray, "step task"]]


def events_of(recording: Recording, config: WildfireConfig) -> Events:
    """All openness events of an episode."""
    fires = fire_changes(rules_from_config(config), recording.sights.state)
    return listed(fires | agent_changes(recording.sights.present))


def fire_changes(rules: Rules, states: WildfireState) -> Changes:
    """What happened to each cell in each step, from the states around it.

    A fire that is put out can light up again in the same step, so that burning alone
    does not show it; but each putout and burnout takes fuel. A cell that catches fire
    beside one that burns is counted as spread, although it may have lit by itself.
    """
    burning, fuel = np.asarray(states.burning), np.asarray(states.fuel)
    burnt = np.asarray(states.intensity) >= int(rules.burnt_out)
    lit, lit_after = burning[:-1], burning[1:]
    burnout = lit & burnt[1:] & ~burnt[:-1]
    putout = lit & ~burnout & (~lit_after | (fuel[1:] < fuel[:-1]))
    remaining = lit & ~burnout & ~putout
    new = lit_after & ~remaining
    rates = np.asarray(rules.spread_rates)
    beside = (remaining[:, np.asarray(rules.neighbours)] & (rates > 0)).any(axis=2)
    return {
        "ignition": new & ~beside,
        "spread": new & beside,
        "putout": putout,
        "burnout": burnout,
    }


def scene_of(config: WildfireConfig) -> dict[str, Any]:
    """What never changes in an episode, as plain data."""
    fire, agent = config.fire, config.agent
    return {
        "grid": [config.grid_height, config.grid_width],
        "cells": [[y, x, fire.fire_types[y][x]] for y, x in config.fire_cells],
        "burntOut": fire.num_fire_states - 1,
        "positions": [list(place) for place in agent.agents],
        "power": list(agent.fire_reduction_power),
        "reach": list(agent.attack_range),
        "equipment": [list(bonus) for bonus in agent.equipment_states],
    }


def drawn_of(recording: Recording, config: WildfireConfig) -> dict[str, np.ndarray]:
    """What changes from moment to moment, as small arrays."""
    states = recording.sights.state
    cells, team = len(config.fire_cells), len(config.agent.agents)
    return {
        "intensity": states.intensity[:, :cells],
        "suppressant": states.suppressant[:, :team],
        "capacity": states.capacity[:, :team],
        "equipment": states.equipment[:, :team],
    }
