"""What holds for every wildfire configuration, checked on random ones."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid_simulator import GridSimulator
from plato.domains.wildfire import dynamics
from plato.domains.wildfire.config import WildfireConfig
from plato.domains.wildfire.game import Wildfire
from plato.game import stack
from plato.policies.rules import RulePolicy, uniform
from strategies import CAPACITY, wildfire_configs

STEPS = 12
seeds = st.integers(0, 2**31 - 1)


def build(config: WildfireConfig) -> Wildfire:
    return Wildfire.from_config(config, **CAPACITY)


@partial(jax.jit, static_argnames="steps")
def wander(game: Wildfire, key, steps: int = STEPS):
    """Random play without resets: states before, observations, actions, outcomes."""
    policy = RulePolicy(uniform)

    def one(state, t):
        key_act, key_step = jax.random.split(jax.random.fold_in(key, t))
        seen = game.observe(state)
        actions, _ = policy.act(key_act, seen, None)
        noise = game.noise(key_step)
        following, outcome = game.transition(state, actions, noise)
        return following, (state, seen, actions, noise, following, outcome)

    _, history = jax.lax.scan(one, game.initial(key), jnp.arange(steps))
    return history


def walk(config: WildfireConfig, seed: int):
    return jax.device_get(wander(build(config), jax.random.key(seed)))


@given(wildfire_configs(), seeds)
def test_agrees_with_the_plain_simulator(config, seed):
    _, _, actions, noise, states, outcomes = walk(config, seed)
    simulator = GridSimulator(config)
    cells = config.fire_cells
    team = len(config.agent.agents)
    for t in range(STEPS):
        chosen = [cells[a - 1] if a else None for a in actions[t][:team]]
        field = dict.fromkeys(simulator.cells, np.ones(3, np.float32))
        field |= {cell: noise.field[t, row] for row, cell in enumerate(cells)}
        rewards, burnt, out = simulator.step(chosen, field, noise.agent[t])
        for row, cell in enumerate(cells):
            assert states.burning[t, row] == (simulator.fires[cell] > 0)
            assert states.intensity[t, row] == simulator.intensity[cell]
            assert states.fuel[t, row] == simulator.fuel[cell]
        assert states.suppressant[t, :team].tolist() == simulator.suppressant
        assert states.capacity[t, :team].tolist() == simulator.capacity
        assert states.equipment[t, :team].tolist() == simulator.equipment
        assert states.over[t] == simulator.over == outcomes.terminated[t]
        np.testing.assert_allclose(outcomes.reward[t, :team], rewards, rtol=1e-6)
        assert outcomes.events["burnouts"][t] == burnt
        assert outcomes.events["putouts"][t] == out


@given(wildfire_configs(), seeds)
def test_fires_and_suppressant_stay_in_bounds(config, seed):
    before, _, _, _, after, _ = walk(config, seed)
    burnt_out = config.fire.num_fire_states - 1
    assert (after.intensity >= 0).all()
    assert (after.intensity <= burnt_out).all()
    assert (after.intensity[after.burning] >= 1).all()
    assert (after.intensity[after.burning] < burnt_out).all()
    was_burnt = before.intensity == burnt_out
    assert (after.intensity[was_burnt] == burnt_out).all()
    assert not after.burning[was_burnt].any()
    bonuses = [row[0] for row in config.agent.equipment_states]
    tanks = [*config.agent.possible_capacities, config.agent.initial_capacity]
    most = max(max(tanks) + max(bonuses), *config.agent.initial_suppressants)
    assert (after.suppressant >= min(0, min(tanks) + min(bonuses))).all()
    assert (after.suppressant <= most).all()
    assert (after.equipment >= 0).all()
    assert (after.equipment < len(config.agent.equipment_states)).all()


@given(wildfire_configs(), seeds)
def test_options_are_the_reachable_fires_of_present_agents(config, seed):
    states, seen, *_ = walk(config, seed)
    agent, cells = config.agent, config.fire_cells
    for t in range(STEPS):
        for n, (ay, ax) in enumerate(agent.agents):
            carries = states.suppressant[t, n] > 0
            assert seen.present[t, n] == carries
            bonus = agent.equipment_states[states.equipment[t, n]][2]
            for row, (y, x) in enumerate(cells):
                near = max(abs(ay - y), abs(ax - x)) <= agent.attack_range[n] + bonus
                expected = (
                    states.burning[t, row]
                    and carries
                    and (near or config.show_bad_actions)
                )
                assert seen.options[t, n, row, 0] == expected
        assert not seen.options[t, len(agent.agents) :].any()
        assert not seen.options[t, :, len(cells) :].any()
        assert not seen.present[t, len(agent.agents) :].any()


@given(wildfire_configs(), seeds)
def test_what_may_be_offered_is_what_some_equipment_reaches(config, seed):
    game, agent = build(config), config.agent
    bonus = max(state[2] for state in agent.equipment_states)
    expected = np.zeros(game.within_reach.shape, bool)
    for n, (ay, ax) in enumerate(agent.agents):
        for row, (y, x) in enumerate(config.fire_cells):
            near = max(abs(ay - y), abs(ax - x)) <= agent.attack_range[n] + bonus
            expected[n, row] = near or config.show_bad_actions
    np.testing.assert_array_equal(game.within_reach, expected)
    _, seen, *_ = walk(config, seed)
    assert not (seen.options & ~expected[:, :, None]).any()


@given(wildfire_configs(), seeds)
def test_capacity_is_memory_not_meaning(config, seed):
    """The same key gives the same episode, however many rows there are."""
    small = jax.device_get(wander(build(config), jax.random.key(seed)))
    roomy = Wildfire.from_config(
        config, agents=CAPACITY["agents"] + 3, tasks=CAPACITY["tasks"] + 5
    )
    large = jax.device_get(wander(roomy, jax.random.key(seed)))

    def cut(leaf, like):
        return leaf[tuple(slice(size) for size in like.shape)]

    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, cut(b, a)), small, large)


@given(st.lists(wildfire_configs(), min_size=3, max_size=3), seeds)
def test_stacking_setups_changes_nothing(configs, seed):
    games = [build(config) for config in configs]
    keys = jax.random.split(jax.random.key(seed), len(games))
    together = jax.device_get(jax.vmap(wander)(stack(games), keys))
    for i, game in enumerate(games):
        alone = jax.device_get(wander(game, keys[i]))
        jax.tree.map(
            lambda a, b, i=i: np.testing.assert_allclose(a, b[i], rtol=1e-6),
            alone,
            together,
        )


@given(wildfire_configs(), seeds)
def test_the_same_seed_gives_the_same_episode(config, seed):
    first, second = walk(config, seed), walk(config, seed)
    jax.tree.map(np.testing.assert_array_equal, first, second)


@given(wildfire_configs(), seeds)
def test_a_game_that_is_over_stays_over(config, seed):
    before, seen, _, _, after, outcomes = walk(config, seed)
    for t in np.flatnonzero(before.over):
        assert after.over[t]
        assert outcomes.terminated[t]
        assert not outcomes.truncated[t]
        assert not seen.options[t].any()
        assert not outcomes.reward[t].any()


@given(wildfire_configs(), seeds)
def test_truncation_comes_with_the_time_limit(config, seed):
    *_, outcomes = walk(config, seed)
    times = np.arange(1, STEPS + 1)
    expected = (times >= config.max_steps) & ~outcomes.terminated
    np.testing.assert_array_equal(outcomes.truncated, expected)


@given(wildfire_configs(), seeds)
def test_counts_match_what_happened(config, seed):
    before, _, _, _, after, outcomes = walk(config, seed)
    burnt_out = config.fire.num_fire_states - 1
    newly_burnt = (after.intensity == burnt_out) & (before.intensity != burnt_out)
    assert (outcomes.events["burnouts"] == newly_burnt.sum(axis=1)).all()
    dry = (after.suppressant <= 0) & (before.suppressant > 0)
    assert (outcomes.events["zero_suppressant"] == dry.sum(axis=1)).all()
    lit_change = after.burning.sum(axis=1) - before.burning.sum(axis=1)
    events = outcomes.events
    expected = events["new_fires"] - events["putouts"] - events["burnouts"]
    assert (lit_change == expected).all()


@pytest.mark.parametrize("spare", [0, 1, 7])
def test_noise_of_a_row_does_not_depend_on_the_rows(spare):
    key = jax.random.key(3)
    few = dynamics.draw_noise(key, agents=3, tasks=4)
    many = dynamics.draw_noise(key, agents=3 + spare, tasks=4 + 2 * spare)
    np.testing.assert_array_equal(few.field, many.field[:4])
    np.testing.assert_array_equal(few.agent, many.agent[:3])


def test_a_large_crowded_grid_steps_correctly():
    """100 x 100 cells, 500 agents: five steps against the plain simulator."""
    from large_grid import large_config

    config = large_config(side=100, agents=500, seed=1)
    game = Wildfire.from_config(config)
    assert game.capacity == (500, 10_000, 1)
    key = jax.random.key(0)
    _, _, actions, noise, states, outcomes = jax.device_get(wander(game, key, 5))
    simulator = GridSimulator(config)
    for t in range(5):
        chosen = [config.fire_cells[a - 1] if a else None for a in actions[t]]
        assert sum(cell is not None for cell in chosen) > 30
        field = dict(zip(config.fire_cells, noise.field[t], strict=True))
        rewards, *_ = simulator.step(chosen, field, noise.agent[t])
        burning = [simulator.fires[cell] > 0 for cell in config.fire_cells]
        np.testing.assert_array_equal(states.burning[t], burning)
        intensity = [simulator.intensity[cell] for cell in config.fire_cells]
        np.testing.assert_array_equal(states.intensity[t], intensity)
        np.testing.assert_array_equal(states.suppressant[t], simulator.suppressant)
        np.testing.assert_allclose(outcomes.reward[t], rewards, rtol=1e-6)


@given(wildfire_configs())
def test_any_configuration_survives_toml(config):
    import tomllib

    from plato.configuration import from_mapping
    from plato.domains.setups import setup_toml

    config = replace(config, description='a "quoted"\n\ttext – with ü', evidence="\x7f")
    data = tomllib.loads(setup_toml(config))
    assert data.pop("domain") == "wildfire"
    assert from_mapping(WildfireConfig, data) == config
