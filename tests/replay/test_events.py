"""Openness events: by hand on a small case, and against what the game counts."""

from dataclasses import replace

import numpy as np
import pytest

from plato.domains.setups import Setup, load_setup
from plato.domains.wildfire.dynamics import WildfireState
from plato.domains.wildfire.game import rules_from_config
from plato.evaluation.named import named_policy
from plato.replay.events import agent_changes, listed
from plato.replay.recording import record
from plato.replay.wildfire import events_of, fire_changes

BASE = load_setup("wildfire-2x3-S3").config


def row_of_three():
    """Three cells in a row that can all burn; burnt out is intensity 4."""
    ones = ((1, 1, 1),)
    fire = replace(
        BASE.fire, fire_types=ones, lit=((True, False, False),), ignition_temp=ones
    )
    return replace(
        BASE,
        grid_height=1,
        grid_width=3,
        fire=fire,
        agent=replace(BASE.agent, agents=((0, 0), (0, 1), (0, 2))),
        reward=replace(BASE.reward, fire_rewards=((1.0, 1.0, 1.0),)),
    )


def states(burning, intensity, fuel):
    blank = {name: np.zeros(0) for name in WildfireState.__dataclass_fields__}
    known = {"burning": np.asarray(burning, bool), "intensity": np.asarray(intensity)}
    state = object.__new__(WildfireState)
    for name, value in (blank | known | {"fuel": np.asarray(fuel)}).items():
        object.__setattr__(state, name, value)
    return state


def test_fires_by_hand():
    found = fire_changes(
        rules_from_config(row_of_three()),
        states(
            burning=[[1, 0, 0], [1, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0]],
            intensity=[[1, 0, 0], [3, 1, 0], [1, 4, 0], [0, 4, 1], [0, 4, 0]],
            fuel=[[9, 9, 9], [9, 9, 9], [8, 8, 9], [7, 8, 9], [7, 8, 8]],
        ),
    )
    events = listed(found)
    assert events.at(1) == [("spread", 1)]  # from the fire on its left
    # The first is put out and lights up again, beside one that burns out: by itself.
    assert events.at(2) == [("ignition", 0), ("putout", 0), ("burnout", 1)]
    assert events.at(3) == [("ignition", 2), ("putout", 0)]
    assert events.at(4) == [("putout", 2)]
    assert events.counts["burnout"] == 1


def test_agents_by_hand():
    present = np.asarray([[1, 1], [0, 1], [0, 1], [1, 0]], bool)
    events = listed(agent_changes(present))
    assert [events.at(time) for time in range(4)] == [
        [],
        [("departure", 0)],
        [],
        [("departure", 1), ("return", 0)],
    ]
    assert events.counts == {"departure": 2, "return": 1}


def test_nothing_happens_in_an_empty_episode():
    events = listed(agent_changes(np.ones((1, 3), bool)))
    assert events.counts == {"departure": 0, "return": 0}
    assert events.at(0) == []


@pytest.mark.parametrize("name", ["wildfire-4x4-S1", "wildfire-3x3-S3", "spreading"])
@pytest.mark.parametrize("policy", ["random", "noop", "weakest"])
def test_events_are_as_many_as_the_game_counts(name, policy):
    setup = spreading() if name == "spreading" else load_setup(name)
    recording = record(named_policy(policy, setup), setup, name=policy, seed=211)
    counts = events_of(recording, setup.config).counts
    last = {name: values[-1] for name, values in recording.metrics.items()}
    assert counts["putout"] == last["putouts"]
    assert counts["burnout"] == last["burnouts"]
    assert counts["ignition"] + counts["spread"] == last["new_fires"]
    assert counts["departure"] == last["zero_suppressant"]
    if name == "spreading" and policy == "random":
        assert min(counts.values()) > 0


def spreading() -> Setup:
    """Fires beside each other, that both spread and ignite, with little fuel."""
    config = row_of_three()
    fire = replace(config.fire, base_spread_rate=0.4, initial_fuel=12)
    fire = replace(fire, random_ignition_probability=0.3, burnout_probability=0.1)
    return Setup("spreading", replace(config, fire=fire))
