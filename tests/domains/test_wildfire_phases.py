"""Each phase of a wildfire step against cases worked out by hand."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from plato.domains.setups import load_setup
from plato.domains.wildfire import dynamics
from plato.domains.wildfire.config import WildfireConfig
from plato.domains.wildfire.dynamics import Rules, WildfireNoise, WildfireState
from plato.domains.wildfire.game import rules_from_config
from plato.domains.wildfire.odds import spread_rates

BASE = load_setup("wildfire-3x3-S3").config
"""Agents on the diagonal; fires (0,1) size 1, (1,0) size 2, (1,2) size 1, (2,1) size 2
are rows 0 to 3; five intensities; tanks of 2."""


def start(**groups: dict) -> tuple[WildfireConfig, Rules, WildfireState]:
    """BASE with some fields changed, its rules and its first state."""
    config = BASE
    for group, fields in groups.items():
        config = replace(config, **{group: replace(getattr(config, group), **fields)})
    rules = rules_from_config(config)
    return config, rules, dynamics.initial_state(rules)


def numbers(*values: float) -> jnp.ndarray:
    return jnp.asarray(values, jnp.float32)


def flags(*values: int) -> jnp.ndarray:
    return jnp.asarray(values, bool)


class TestSuppressant:
    def test_a_fight_uses_one_unit_below_its_probability(self):
        _, rules, state = start(agent={"suppressant_decrease_probability": 0.5})
        after = dynamics.use_suppressant(
            rules, state, flags(1, 1, 0), numbers(0.49, 0.5, 0.0)
        )
        assert after.suppressant.tolist() == [1.0, 2.0, 2.0]

    def test_use_stops_at_zero(self):
        _, rules, state = start(agent={"initial_suppressant": 0})
        after = dynamics.use_suppressant(rules, state, flags(1, 1, 1), numbers(0, 0, 0))
        assert after.suppressant.tolist() == [0.0, 0.0, 0.0]

    def test_switched_off_means_always(self):
        _, rules, state = start(
            agent={"suppressant_decrease_probability": 0.0},
            stochastic={"suppressant_decrease": False},
        )
        certain = numbers(0.999, 0.999, 0.999)
        after = dynamics.use_suppressant(rules, state, flags(1, 1, 1), certain)
        assert after.suppressant.tolist() == [1.0, 1.0, 1.0]

    def test_refill_takes_capacity_and_the_equipment_bonus(self):
        _, rules, state = start(
            agent={
                "initial_suppressant": 0,
                "suppressant_refill_probability": 0.6,
                "equipment_states": ((1.0, 0.0, 0.0),) * 3,
            }
        )
        after, refilled = dynamics.refill(
            rules, state, flags(1, 1, 0), numbers(0.59, 0.61, 0.0)
        )
        assert after.suppressant.tolist() == [3.0, 0.0, 0.0]
        assert refilled.tolist() == [True, False, False]

    def test_a_new_tank_keeps_what_is_missing(self):
        _, rules, state = start(
            agent={
                "initial_capacity": 2,
                "capacity_probabilities": (0.25, 0.5, 0.25),
                "tank_switch_probability": 0.3,
            },
            stochastic={"tank_switch": True},
        )
        state = replace(state, suppressant=numbers(1.0, 2.0, 2.0))
        # 0.25 falls into the first bucket (its end belongs to it), 0.76 into the last.
        after = dynamics.switch_tank(
            rules, state, flags(1, 1, 1), numbers(0.76, 0.25, 0.9), numbers(0, 0, 0.3)
        )
        assert after.capacity.tolist() == [3.0, 1.0, 2.0]
        assert after.suppressant.tolist() == [2.0, 1.0, 2.0]

    def test_no_tank_without_a_refill(self):
        _, rules, state = start(agent={"capacity_probabilities": (1.0, 0.0, 0.0)})
        after = dynamics.switch_tank(
            rules, state, flags(0, 1, 0), numbers(0.5, 0.5, 0.5), numbers(0, 0, 0)
        )
        assert after.capacity.tolist() == [2.0, 1.0, 2.0]


class TestEquipment:
    def test_repair_error_and_wear(self):
        _, rules, state = start(
            agent={
                "repair_probability": 0.5,
                "degrade_probability": 0.4,
                "critical_error_probability": 0.2,
            },
            stochastic={"repair": True, "degrade": True, "critical_error": True},
        )
        levels = jnp.asarray([0, 0, 2], jnp.int32)
        state = replace(state, equipment=levels)
        wear = dynamics.wear_equipment
        assert wear(rules, state, numbers(0.49, 0.5, 0.19)).equipment.tolist() == [
            2,  # repaired
            0,  # not repaired
            0,  # a critical error, not a loss of one level
        ]
        state = replace(state, equipment=jnp.asarray([2, 1, 1], jnp.int32))
        assert wear(rules, state, numbers(0.3, 0.1, 0.4)).equipment.tolist() == [
            1,  # degraded: above the error's number, below that of wear
            0,  # an intermediate level wears too, and knows no critical error
            1,
        ]

    def test_switched_off_wear_and_repair_are_certain(self):
        _, rules, state = start(
            agent={"degrade_probability": 0.0, "repair_probability": 0.0},
            stochastic={"degrade": False, "repair": False},
        )
        state = replace(state, equipment=jnp.asarray([2, 1, 0], jnp.int32))
        late = numbers(0.99, 0.99, 0.99)
        assert dynamics.wear_equipment(rules, state, late).equipment.tolist() == [
            1,
            0,
            2,
        ]

    def test_bonuses_reach_power_and_range(self):
        _, rules, state = start(
            agent={
                "equipment_states": ((0.0, 0.5, 1.0),) * 3,
                "attack_range": (0, 0, 0),
            }
        )
        reach = dynamics.reachable(rules, state)
        assert reach.tolist() == [
            [True, True, False, False],
            [True, True, True, True],
            [False, False, True, True],
        ]
        hits = jnp.zeros((3, 4), bool).at[0, 1].set(True).at[1, 1].set(True)
        assert dynamics.attack_power(rules, state, hits).tolist() == [0, 3.0, 0, 0]


class TestFires:
    def test_growth_and_burnout(self):
        _, rules, state = start(fire={"initial_fuel": 3, "burnout_clears_fuel": False})
        state = replace(state, intensity=jnp.asarray([1, 2, 3, 3], jnp.int32))
        attack = numbers(0, 2, 0, 1)  # row 1 is matched, row 3 (size 2) is not
        after, burnt = dynamics.grow(rules, state, attack, numbers(0.69, 0, 0.49, 0.5))
        assert after.intensity.tolist() == [2, 2, 4, 3]
        assert burnt.tolist() == [False, False, True, False]
        assert after.burning.tolist() == [True, True, False, True]
        assert after.fuel.tolist() == [3, 3, 2, 3]

    def test_a_burnout_can_clear_the_fuel(self):
        _, rules, state = start(fire={"initial_fuel": 3, "burnout_clears_fuel": True})
        state = replace(state, intensity=jnp.asarray([3, 1, 1, 1], jnp.int32))
        after, _ = dynamics.grow(rules, state, numbers(0, 0, 0, 0), numbers(0, 1, 1, 1))
        assert after.fuel.tolist() == [0, 3, 3, 3]

    @pytest.mark.parametrize(
        ("increase", "special", "growth", "burnout"),
        [
            (True, True, 0.7, 0.5),
            (True, False, 0.7, 0.7),
            (False, True, 1.0, 0.5),
            (False, False, 1.0, 0.7),  # as in the reference, not 1
        ],
    )
    def test_which_probability_applies(self, increase, special, growth, burnout):
        _, rules, _ = start(
            stochastic={
                "fire_increase": increase,
                "special_burnout_probability": special,
            }
        )
        assert float(rules.growth_probability) == pytest.approx(growth)
        assert float(rules.burnout_probability) == pytest.approx(burnout)

    def test_suppression_and_extra_power(self):
        _, rules, state = start(fire={"initial_fuel": 1})
        state = replace(state, intensity=jnp.asarray([1, 2, 1, 1], jnp.int32))
        # 0.5, + 0.15 for each unit beyond the size: row 0 meets 1 of 1, row 1 meets
        # 4 of 2, row 2 meets 2 of 1, row 3 meets 1 of 2.
        attack = numbers(1, 4, 2, 1)
        after, out = dynamics.suppress(
            rules, state, attack, numbers(0.5, 0.79, 0.64, 0)
        )
        assert out.tolist() == [False, False, True, False]
        assert after.intensity.tolist() == [1, 1, 0, 1]
        assert after.burning.tolist() == [True, True, False, True]
        assert after.fuel.tolist() == [1, 1, 0, 1]

    def test_spread_comes_from_burning_neighbours(self):
        _, rules, state = start(
            fire={
                "fire_types": ((1, 1, 1), (2, 0, 1), (0, 2, 0)),
                "lit": ((False, True, False), (True, False, False), (False,) * 3),
            },
            reward={"fire_rewards": ((2.0,) * 3,) * 3},
            stochastic={"random_fire_ignition": False},
        )
        # Rows: (0,0) between two fires, (0,1) lit, (0,2) beside one, (1,0) lit,
        # (1,2) and (2,1) beside none.
        after, new = dynamics.spread(
            rules, state, numbers(0.99, 0.0, 0.59, 0.0, 0.0, 0.0)
        )
        assert new.tolist() == [True, False, True, False, False, False]
        assert after.intensity.tolist() == [1, 1, 1, 2, 0, 0]

    def test_ignition_needs_fuel_and_a_cell_that_is_not_burnt(self):
        _, rules, state = start()
        state = replace(
            state,
            burning=flags(0, 0, 0, 1),
            intensity=jnp.asarray([0, 4, 0, 1], jnp.int32),
            fuel=jnp.asarray([0, 5, 5, 5], jnp.int32),
        )
        _, new = dynamics.spread(rules, state, numbers(0, 0, 0.59, 0))
        assert new.tolist() == [False, False, True, False]

    def test_wind_carries_fire(self):
        fire = replace(BASE.fire, base_spread_rate=25.0, wind_direction=0.0)
        north, east, south, west = spread_rates(fire, spreads=True, realistic=True)
        stretch = 1 - 25 / 67
        assert north == pytest.approx(0.125 / (1 - stretch))
        assert east == pytest.approx(0.125)
        assert south == pytest.approx(0.125 / (1 + stretch))
        assert west == pytest.approx(0.125)

    def test_no_rate_is_not_a_number(self):
        fire = replace(BASE.fire, base_spread_rate=0.0, wind_direction=0.0)
        assert spread_rates(fire, spreads=True, realistic=True) == [0.0] * 4


class TestRewardsAndEnd:
    def test_shared_and_localized(self):
        hits = jnp.zeros((3, 4), bool).at[0, 1].set(True).at[1, 1].set(True)
        out, burnt = flags(0, 1, 0, 0), flags(1, 0, 0, 0)
        _, shared, _ = start()
        assert dynamics.rewards(shared, hits, out, burnt).tolist() == [2.0, 2.0, 2.0]
        _, local, _ = start(reward={"localize_putouts": True})
        assert dynamics.rewards(local, hits, out, burnt).tolist() == [2.0, 2.0, -2.0]

    def test_a_flat_burnout_penalty(self):
        _, rules, _ = start(
            reward={"burnout_penalty": -1.5, "burnout_penalty_scaled": False}
        )
        nobody, none = jnp.zeros((3, 4), bool), flags(0, 0, 0, 0)
        two = flags(1, 0, 1, 0)
        assert dynamics.rewards(rules, nobody, none, two).tolist() == [-3.0] * 3

    def test_the_end_waits_for_the_fuel(self):
        _, fuelled, state = start()
        out = replace(state, burning=flags(0, 0, 0, 0))
        assert not dynamics.end(fuelled, out)[0].over
        spent = replace(out, fuel=jnp.zeros(4, jnp.int32))
        assert dynamics.end(fuelled, spent)[0].over
        _, plain, _ = start(stochastic={"fire_fuel": False})
        assert dynamics.end(plain, out)[0].over
        over = dynamics.end(plain, out)[0]
        assert not dynamics.end(plain, over)[1]  # it ends once

    def test_the_termination_bonus_shrinks_with_burnouts(self):
        _, rules, _ = start(
            reward={"termination_reward": 5.0, "termination_kappa": 2.0}
        )
        bonus = [
            float(dynamics.termination_bonus(rules, jnp.asarray(n))) for n in (0, 1)
        ]
        assert bonus == pytest.approx([5.0, 5.0 - 2 * np.log(2)])
        assert float(dynamics.termination_bonus(rules, jnp.asarray(10**6))) == 0.0

    def test_a_bad_attack_costs_its_agent_alone(self):
        config = replace(
            BASE,
            show_bad_actions=True,
            reward=replace(BASE.reward, bad_attack_penalty=-3.0),
        )
        rules = rules_from_config(config)
        state = dynamics.initial_state(rules)
        noise = WildfireNoise(jnp.ones((4, 3)), jnp.ones((3, 5)))
        # Agent 1 at (0,0) tries (2,1), far away; agent 2 idles; agent 3 fights (2,1).
        after, outcome = dynamics.transition(
            rules, state, jnp.asarray([4, 0, 4]), noise
        )
        assert outcome.reward.tolist() == [-3.0, 0.0, 0.0]
        assert after.suppressant.tolist() == [2.0, 2.0, 2.0]

    def test_a_fire_put_out_can_come_back_in_the_same_step(self):
        _, rules, state = start()
        noise = WildfireNoise(
            field=jnp.ones((4, 3)).at[0].set(numbers(1, 0, 0)), agent=jnp.ones((3, 5))
        )
        after, outcome = dynamics.transition(
            rules, state, jnp.asarray([1, 0, 0]), noise
        )
        assert outcome.events["putouts"] == 1
        assert outcome.events["new_fires"] == 1
        assert after.burning[0]
        assert outcome.reward.tolist() == [2.0, 2.0, 2.0]
