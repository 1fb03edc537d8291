"""Rules of thumb against hand-made moments, and the mistake of the released ones."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from plato.domains.setups import load_setup
from plato.domains.wildfire.game import Wildfire
from plato.domains.wildfire.heuristics import RULES
from plato.policies.rules import RecordedTiesPolicy, RulePolicy

GAME = Wildfire.from_config(load_setup("wildfire-3x3-S3").config)
"""Agent 1 reaches rows 0, 1; agent 2 all four; agent 3 rows 2, 3."""


def moment(intensity: list[int], suppressant=(2.0, 2.0, 2.0)):
    state = GAME.initial(jax.random.key(0))
    values = jnp.asarray(intensity, jnp.int32)
    carried = jnp.asarray(suppressant, jnp.float32)
    return GAME.observe(
        replace(state, intensity=values, burning=values > 0, suppressant=carried)
    )


def liked(rule: str, *args) -> list[list[int]]:
    sets = np.asarray(RULES[rule](moment(*args)))
    return [np.flatnonzero(row).tolist() for row in sets]


def test_weakest_and_strongest_look_at_what_they_reach():
    assert liked("weakest", [3, 1, 2, 2]) == [[2], [2], [3, 4]]
    assert liked("strongest", [3, 1, 2, 2]) == [[1], [1], [3, 4]]


def test_the_released_ones_look_at_the_first_fires_of_the_grid():
    # Agent 3 reaches rows 2 and 3 (two fires), and compares rows 0 and 1 instead.
    assert liked("weakest-released", [3, 1, 1, 3]) == [[2], [2, 3], [4]]
    assert liked("strongest-released", [3, 1, 1, 3]) == [[1], [1, 4], [3]]
    # With row 0 out, the first two fires of the grid are rows 1 and 2.
    assert liked("weakest-released", [0, 3, 1, 2]) == [[2], [3], [4]]


def test_nobody_prefers_what_is_not_offered():
    for rule in ("weakest", "strongest", "weakest-released", "strongest-released"):
        assert liked(rule, [0, 0, 0, 0]) == [[], [], []]
        assert liked(rule, [1, 1, 1, 1], (0.0, 2.0, 0.0))[::2] == [[], []]
    assert liked("noop", [1, 1, 1, 1]) == [[], [], []]
    assert liked("random", [0, 2, 2, 0])[0] == [0, 2]


def test_an_empty_preference_is_noop():
    policy = RulePolicy(RULES["weakest"])
    actions, _ = policy.act(jax.random.key(0), moment([0, 0, 0, 2]), None)
    assert actions.tolist() == [0, 4, 4]


def test_recorded_ties_are_read_by_those_who_have_a_choice():
    stream = jnp.asarray([1, 2, 0, 3], jnp.uint32)
    policy = RecordedTiesPolicy(stream, RULES["weakest"])
    memory = policy.start(3)
    # Agent 1 reaches nothing and reads nothing.
    actions, memory = policy.act(jax.random.key(0), moment([0, 0, 1, 1]), memory)
    assert actions.tolist() == [0, 4, 3]  # 1 mod 2: the second; 2 mod 2: the first
    assert int(memory) == 2
    actions, memory = policy.act(jax.random.key(0), moment([1, 1, 0, 0]), memory)
    assert actions.tolist() == [1, 2, 0]
    assert int(memory) == 4
