"""What a configuration refuses, and in which words."""

import copy

import pytest

from plato.configuration import from_mapping, to_mapping
from plato.domains.setups import load_setup, read_setup, setup_names, write_setup
from plato.domains.wildfire.config import WildfireConfig
from plato.errors import PlatoError

GOOD = to_mapping(load_setup("wildfire-3x3-S2").config)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("fire.burnout_chance", 0.5, "fire.burnout_chance is not a known field"),
        ("fire.burnout_probabilty", 0.5, "did you mean 'burnout_probability'?"),
        ("fire.burnout_probability", 1.2, "fire.burnout_probability must be a prob"),
        ("agent.repair_probability", -0.1, "agent.repair_probability must be a prob"),
        ("fire.burnout_probability", "high", "fire.burnout_probability must be a numb"),
        ("fire.burnout_probability", True, "fire.burnout_probability must be a number"),
        ("fire.burnout_probability", float("nan"), "must be a finite number"),
        ("grid_width", 4, "fire.fire_types is 3x3, but the grid is 3x4"),
        ("grid_height", 0, "grid_height must be at least 1"),
        ("fire.lit", [[True]], "fire.lit is 1x1, but fire.fire_types is 3x3"),
        ("fire.lit", [[True, True], [True]], "rows all have the same length"),
        (
            "fire.ignition_temp",
            [[9] * 3] * 3,
            "fire.ignition_temp[0][1] must be from 1",
        ),
        ("fire.fire_types", [[0] * 3] * 3, "fire.lit[0][1] is true, but"),
        ("fire.num_fire_states", 2, "fire.num_fire_states must be at least 3"),
        ("fire.wind_direction", 7.0, "fire.wind_direction must be between 0 and 2 pi"),
        ("fire.cell_size", 0.0, "fire.cell_size must be greater than 0"),
        ("agent.agents", [[0, 0], [1, 1], [5, 5]], "agent.agents[2] stands at (5, 5)"),
        (
            "agent.agents",
            [[0, 0], [1, 1], [-1, 0]],
            "agent.agents[2] stands at (-1, 0)",
        ),
        ("agent.agents", [], "agent.agents is empty"),
        ("agent.agents", [[0, 0, 0]], "agent.agents[0] must have 2 entries, not 3"),
        ("agent.attack_range", [1, 1], "agent.attack_range has 2 entries"),
        (
            "agent.initial_suppressant",
            [1, 1],
            "agent.initial_suppressant has 2 entries",
        ),
        ("agent.initial_suppressant", 9, "agent.initial_suppressant must be from 0 to"),
        ("agent.initial_equipment_state", 3, "agent.initial_equipment_state must be"),
        ("agent.capacity_probabilities", [0.5, 0.5], "give one for each of the 3"),
        ("agent.capacity_probabilities", [0.5, 0.5, 0.5], "must add up to 1, not 1.5"),
        ("agent.possible_capacities", [0.5, 2, 3], "agent.possible_capacities[0] must"),
        ("reward.burnout_penalty", -1.0, "burnout_penalty_scaled replaces it"),
        ("reward.fire_rewards", [[1.0]], "reward.fire_rewards is 1x1"),
        ("stochastic.realistic_fire_spread", True, "turn fire_spread on too"),
        ("stochastic.fire_spread", 1, "stochastic.fire_spread must be true or false"),
        ("max_steps", 0, "max_steps must be at least 1"),
        ("fire", 3, "fire must be a table of fields"),
    ],
)
def test_wrong_values_are_named(path, value, words):
    data = copy.deepcopy(GOOD)
    *groups, name = path.split(".")
    place = data
    for group in groups:
        place = place[group]
    place[name] = value
    with pytest.raises(PlatoError) as caught:
        from_mapping(WildfireConfig, data)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_whole_floats_stand_for_whole_numbers():
    data = copy.deepcopy(GOOD)
    data["agent"] |= {"initial_capacity": 2.0, "attack_range": [1.0, 1.0, 1.0]}
    assert from_mapping(WildfireConfig, data).agent.initial_capacity == 2
    data["agent"] |= {"initial_capacity": 2.5}
    with pytest.raises(PlatoError, match="must be a whole number"):
        from_mapping(WildfireConfig, data)


def test_degradation_and_critical_error_must_fit():
    data = copy.deepcopy(GOOD)
    data["agent"] |= {"degrade_probability": 0.7, "critical_error_probability": 0.4}
    with pytest.raises(PlatoError, match="add up to at most 1"):
        from_mapping(WildfireConfig, data)
    data = copy.deepcopy(GOOD)
    data["stochastic"] |= {"critical_error": True, "degrade": False}
    with pytest.raises(PlatoError, match="turn degrade on too"):
        from_mapping(WildfireConfig, data)


def test_realistic_spread_needs_its_maximum():
    data = copy.deepcopy(GOOD)
    data["stochastic"] |= {"fire_spread": True, "realistic_fire_spread": True}
    data["fire"] |= {"base_spread_rate": 90.0}
    with pytest.raises(PlatoError, match="must not exceed"):
        from_mapping(WildfireConfig, data)


def test_a_missing_field_is_named():
    data = copy.deepcopy(GOOD)
    del data["fire"]["lit"]
    with pytest.raises(PlatoError, match=r"fire\.lit is missing"):
        from_mapping(WildfireConfig, data)


def test_all_27_setups_load_and_survive_a_round_trip(tmp_path):
    names = setup_names()
    assert len(names) == 27
    for name in names:
        setup = load_setup(name)
        assert setup.config.description
        assert setup.config.evidence
        path = tmp_path / f"{name}.toml"
        write_setup(path, setup.config)
        assert read_setup(path) == setup.config


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("grid_height = ", "is not valid TOML"),
        ("grid_height = 3", "domain is None"),
        ('domain = "sea"', "domain is 'sea'"),
        ('domain = "wildfire"', "grid_height is missing"),
    ],
)
def test_wrong_files_are_named(tmp_path, text, words):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(PlatoError) as caught:
        load_setup(path)
    assert str(path) in str(caught.value)
    assert words in str(caught.value)


def test_a_setup_that_is_not_there(tmp_path):
    with pytest.raises(PlatoError, match="There is no setup named 'wildfire-9x9'"):
        load_setup("wildfire-9x9")
    with pytest.raises(PlatoError, match="cannot be read"):
        load_setup(tmp_path / "none.toml")
