"""Random wildfire configurations, valid by construction, with every switch in play."""

from hypothesis import strategies as st

from plato.domains.wildfire.config import (
    AgentConfig,
    FireConfig,
    RewardConfig,
    StochasticConfig,
    WildfireConfig,
)

MAX_SIDE, MAX_AGENTS = 4, 4
CAPACITY = {"agents": MAX_AGENTS, "tasks": MAX_SIDE * MAX_SIDE}
"""Rows that hold any of these configurations, so that one compilation serves them."""

probabilities = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.6, 0.8, 1.0])
EQUIPMENT = (
    ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
    ((-1.0, -0.5, -1.0), (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
    ((0.0, 0.0, 0.0), (1.0, 0.5, 0.0), (2.0, 1.0, 1.0)),
    ((-4.0, 0.0, 0.0), (-2.0, -0.5, 0.0), (0.0, 0.0, 0.0)),
)
TANKS = ((0.25, 0.5, 0.25), (0.0, 1.0, 0.0), (0.0, 0.5, 0.5))


@st.composite
def fire_configs(draw, height: int, width: int) -> FireConfig:
    def grid(cells):
        row = st.tuples(*[cells] * width)
        return draw(st.tuples(*[row] * height))

    states = draw(st.integers(4, 6))
    types = grid(st.integers(0, 3))
    flips = grid(st.booleans())
    lit = tuple(
        tuple(flip and size > 0 for flip, size in zip(*rows, strict=True))
        for rows in zip(flips, types, strict=True)
    )
    return FireConfig(
        fire_types=types,
        lit=lit,
        num_fire_states=states,
        ignition_temp=grid(st.integers(1, states - 2)),
        intensity_increase_probability=draw(probabilities),
        intensity_decrease_probability=draw(probabilities),
        extra_power_decrease_bonus=draw(st.sampled_from([0.0, 0.12, 0.5])),
        burnout_probability=draw(probabilities),
        base_spread_rate=draw(st.sampled_from([0.0, 0.1, 0.6, 25.0])),
        max_spread_rate=67.0,
        random_ignition_probability=draw(probabilities),
        cell_size=200.0,
        wind_direction=draw(st.sampled_from([0.0, 0.785, 3.456, 6.28])),
        initial_fuel=draw(st.integers(0, 3)),
        burnout_clears_fuel=draw(st.booleans()),
    )


@st.composite
def agent_configs(draw, height: int, width: int, most: int) -> AgentConfig:
    count = draw(st.integers(1, most))

    def each(values):
        return draw(st.tuples(*[values] * count))

    degrade = draw(st.sampled_from([0.0, 0.1, 0.4]))
    return AgentConfig(
        agents=each(st.tuples(st.integers(0, height - 1), st.integers(0, width - 1))),
        fire_reduction_power=each(st.sampled_from([1.0, 2.0])),
        attack_range=each(st.integers(0, 2)),
        suppressant_states=4,
        initial_suppressant=draw(st.integers(0, 3))
        if draw(st.booleans())
        else each(st.integers(0, 3)),
        suppressant_decrease_probability=draw(probabilities),
        suppressant_refill_probability=draw(probabilities),
        initial_equipment_state=draw(st.integers(0, 2)),
        equipment_states=draw(st.sampled_from(EQUIPMENT)),
        repair_probability=draw(probabilities),
        degrade_probability=degrade,
        critical_error_probability=draw(st.sampled_from([0.0, 0.2, 0.6])),
        initial_capacity=draw(st.integers(1, 3)),
        tank_switch_probability=draw(probabilities),
        possible_capacities=(1.0, 2.0, 3.0),
        capacity_probabilities=draw(st.sampled_from(TANKS)),
    )


@st.composite
def reward_configs(draw, height: int, width: int) -> RewardConfig:
    row = st.tuples(*[st.sampled_from([0.0, 2.0, 4.0, 8.0])] * width)
    scaled = draw(st.booleans())
    return RewardConfig(
        fire_rewards=draw(st.tuples(*[row] * height)),
        bad_attack_penalty=draw(st.sampled_from([0.0, -3.0])),
        burnout_penalty=0.0 if scaled else draw(st.sampled_from([0.0, -1.5])),
        burnout_penalty_scaled=scaled,
        termination_reward=draw(st.sampled_from([0.0, 5.0])),
        termination_kappa=draw(st.sampled_from([0.0, 1.0])),
        localize_putouts=draw(st.booleans()),
    )


@st.composite
def stochastic_configs(draw) -> StochasticConfig:
    spread, degrade = draw(st.booleans()), draw(st.booleans())
    flags = {
        name: draw(st.booleans())
        for name in (
            "special_burnout_probability",
            "suppressant_refill",
            "suppressant_decrease",
            "tank_switch",
            "repair",
            "fire_increase",
            "fire_decrease",
            "random_fire_ignition",
            "fire_fuel",
        )
    }
    return StochasticConfig(
        fire_spread=spread,
        realistic_fire_spread=spread and draw(st.booleans()),
        degrade=degrade,
        critical_error=degrade and draw(st.booleans()),
        **flags,
    )


@st.composite
def wildfire_configs(
    draw, rows: int = MAX_SIDE, columns: int = MAX_SIDE, agents: int = MAX_AGENTS
) -> WildfireConfig:
    height, width = draw(st.integers(1, rows)), draw(st.integers(1, columns))
    return WildfireConfig(
        grid_height=height,
        grid_width=width,
        fire=draw(fire_configs(height, width)),
        agent=draw(agent_configs(height, width, agents)),
        reward=draw(reward_configs(height, width)),
        stochastic=draw(stochastic_configs()),
        observe_other_suppressant=draw(st.booleans()),
        observe_other_power=draw(st.booleans()),
        show_bad_actions=draw(st.booleans()),
        max_steps=draw(st.integers(1, 30)),
    )
