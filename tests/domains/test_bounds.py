"""Bounds against cases worked out by hand, enumeration, and episodes as played."""

import itertools
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from known_optima import OPTIMA
from plato.domains.setups import load_setup, setup_names
from plato.domains.wildfire import counting, dynamics, paper_bounds
from plato.domains.wildfire.bounds import wildfire_bounds
from plato.domains.wildfire.config import WildfireConfig
from plato.domains.wildfire.game import Wildfire, rules_from_config
from plato.domains.wildfire.integer_program import Program
from plato.domains.wildfire.limits import Limits, equipment_in_play, limits_of
from plato.domains.wildfire.odds import odds_in_force
from plato.domains.wildfire.optimum.known import known_optimum
from plato.errors import PlatoError
from plato.policies.rules import RulePolicy, uniform
from strategies import wildfire_configs

transition = jax.jit(dynamics.transition)
SECONDS = 20.0
STEPS = 8
ROOM = {"agents": 4, "tasks": 6}
"""Rows for any of the small configurations, so that one compilation serves them."""


def changed(config: WildfireConfig, **groups: dict) -> WildfireConfig:
    """The configuration with some fields of its groups replaced."""
    for group, values in groups.items():
        config = replace(config, **{group: replace(getattr(config, group), **values)})
    return config


def row_of_fires(agents: int, sizes: tuple[int, ...], **groups: dict) -> WildfireConfig:
    """Agents on the first cell, fires in a row; certain suppression and ignition."""
    fires, nothing = len(sizes), (0.0, 0.0, 0.0)
    config = load_setup("wildfire-3x3-S3").config
    config = replace(
        config,
        grid_height=1,
        grid_width=fires,
        max_steps=10,
        fire=replace(
            config.fire,
            fire_types=(sizes,),
            lit=(tuple(size > 0 for size in sizes),),
            ignition_temp=((1,) * fires,),
            random_ignition_probability=1.0,
        ),
        agent=replace(
            config.agent,
            agents=((0, 0),) * agents,
            fire_reduction_power=(1.0,) * agents,
            attack_range=(fires,) * agents,
            initial_suppressant=2,
            suppressant_decrease_probability=0.0,
            equipment_states=(nothing,) * 3,
        ),
        reward=replace(config.reward, fire_rewards=((2.0,) * fires,)),
        stochastic=replace(
            config.stochastic,
            fire_decrease=False,
            random_fire_ignition=True,
            fire_spread=False,
            fire_fuel=False,
        ),
    )
    return changed(config, **groups)


def sound(config: WildfireConfig, mean: bool = False) -> float:
    return counting.upper_bound(config, mean, SECONDS).at_most


def play_lucky(config: WildfireConfig, choose) -> float:
    """The return when fires never grow, always shrink and always ignite again.

    `choose(t, state)` gives each agent's cell, or None. The numbers have a positive
    probability wherever growth is not certain.
    """
    game = Wildfire.from_config(config)
    agents, tasks, _ = game.capacity
    field = np.tile(np.array([0.999999, 0.0, 0.0], np.float32), (tasks, 1))
    lucky = np.array([0.999999, 0.999999, 0.0, 0.5, 0.5], np.float32)
    noise = dynamics.WildfireNoise(
        jnp.asarray(field), jnp.asarray(np.tile(lucky, (agents, 1)))
    )
    team_return = 0.0
    state = game.initial(jax.random.key(0))
    for t in range(config.max_steps):
        cells = choose(t, jax.device_get(state))
        actions = jnp.asarray([0 if x is None else x + 1 for x in cells], jnp.int32)
        state, outcome = transition(game.rules, state, actions, noise)
        team_return += float(np.mean(outcome.reward))
        if outcome.done:
            break
    return team_return


class TestPaper:
    def test_lower_by_hand(self):
        # 3x3 S3: int0 is 1, 2, 1, 2 and a burnout costs 2, 4, 2, 4.
        limits = limits_of(load_setup("wildfire-3x3-S3").config)
        by_hand = -(100 // 2 * 2 + 100 // 3 * 4 + 100 // 2 * 2 + 100 // 3 * 4)
        assert paper_bounds.lower_bound(limits) == by_hand == -464

    def test_simple_upper_by_hand(self):
        # 2x3 S1: two reachable fires of one intensity, three agents: 100 · 2 · 1.
        limits = limits_of(load_setup("wildfire-2x3-S1").config)
        assert paper_bounds.simple_upper_bound(limits) == 200
        # 4x4 S0: six fires, six agents: three at once.
        limits = limits_of(load_setup("wildfire-4x4-S0").config)
        assert paper_bounds.simple_upper_bound(limits) == 600
        # A horizon that int0 does not divide is not floored.
        limits = limits_of(row_of_fires(1, (1, 1), fire={"ignition_temp": ((3, 3),)}))
        assert paper_bounds.simple_upper_bound(limits) == pytest.approx(10 / 3 * 2)

    def test_repetitions_by_hand(self):
        limits = limits_of(row_of_fires(1, (1,), fire={"ignition_temp": ((3,),)}))
        rho = partial(paper_bounds.repetitions, limits, limits.cells[0])
        # h = 10 and int0 = 3: three put-outs in all.
        assert rho(None, 3) == [3, 0, 0]
        assert rho(5, 3) == [3, 0, 0]
        assert rho(2, 3) == [2, 1, 0]
        assert rho(1, 4) == [1, 1, 1, 0]

    def test_program_by_hand(self):
        # One agent, two fires with fuel 3 each: three times 2 in the first cycle, and
        # three times 2 of the other fire in the second.
        config = row_of_fires(1, (1, 1), fire={"initial_fuel": 3})
        limits = limits_of(config)
        assert paper_bounds.program_upper_bound(limits, 3, SECONDS).at_most == 12
        # Without fuel the first cycle takes the whole horizon.
        assert paper_bounds.program_upper_bound(limits, None, SECONDS).at_most == 20
        # A fire of size 2 takes both agents, one of size 3 has nobody.
        limits = limits_of(row_of_fires(2, (2, 3)))
        assert paper_bounds.program_upper_bound(limits, None, SECONDS).at_most == 20

    def test_a_program_that_is_too_large_is_not_written(self, monkeypatch):
        limits = limits_of(row_of_fires(1, (1, 1)))
        monkeypatch.setattr(paper_bounds, "LARGEST_PROGRAM", 3)
        known = paper_bounds.program_upper_bound(limits, None, SECONDS)
        # Both fires in the first cycle, which one agent cannot do.
        assert (known.at_most, known.finished) == (40, False)


@st.composite
def tiny_limits(draw) -> Limits:
    """Two cells and up to three agents, with any reach, sizes, rewards, intensities."""
    agents = draw(st.integers(1, 3))
    sizes = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    limits = limits_of(row_of_fires(agents, sizes))
    reaches = [draw(st.tuples(st.booleans(), st.booleans())) for _ in range(agents)]
    cells = tuple(
        replace(
            cell,
            crew=tuple(n for n in range(agents) if reaches[n][x]),
            ignition=draw(st.integers(1, 4)),
            putout=float(draw(st.integers(-1, 5))),
        )
        for x, cell in enumerate(limits.cells)
    )
    team = tuple(
        replace(agent, fights=fights)
        for agent, fights in zip(limits.agents, reaches, strict=True)
    )
    return replace(limits, cells=cells, agents=team)


def enumerate_cycles(limits: Limits, fuel: int | None, cycles: int) -> float:
    """The paper's program by trying everything, from its text alone."""
    agents, cells = range(len(limits.agents)), range(len(limits.cells))
    best, worth = 0.0, 0.0
    reached = [(n, x) for x in cells for n in limits.cells[x].crew]
    for bits in itertools.product((0, 1), repeat=len(reached) * cycles):
        a = np.zeros((len(agents), len(cells), cycles), int)
        for (n, x), row in zip(
            reached, np.reshape(bits, (len(reached), cycles)), strict=True
        ):
            a[n, x] = row
        sizes = np.array([cell.size for cell in limits.cells])
        crews = a.sum(0)
        f = crews > 0
        if (crews != f * sizes[:, None]).any():
            continue
        work = np.einsum("nxc,x->nc", a, sizes)
        if (work[:, :-1] < work[:, 1:]).any():
            continue
        if (a.sum(2) > 1).any() or (a.sum(1) > 1).any():
            continue
        value = sum(f[x].sum() * limits.cells[x].putout for x in cells)
        rho = [
            paper_bounds.repetitions(limits, cell, fuel, cycles)
            for cell in limits.cells
        ]
        repeated = sum(
            f[x, c] * limits.cells[x].putout * rho[x][c]
            for x in cells
            for c in range(cycles)
        )
        if value > best:
            best, worth = value, repeated
        elif value == best:
            worth = max(worth, repeated)
    return worth


@given(tiny_limits(), st.sampled_from([None, 0, 1, 3]))
def test_the_program_agrees_with_enumeration(limits, fuel):
    known = paper_bounds.program_upper_bound(limits, fuel, SECONDS)
    assert known.finished
    # As many cycles as fires: those that our program leaves out change nothing.
    by_hand = enumerate_cycles(limits, fuel, cycles=2)
    assert known.at_most == pytest.approx(by_hand, abs=1e-6)


class TestSoundByHand:
    def test_one_fire_is_put_out_in_every_step(self):
        config = row_of_fires(1, (1,))
        assert sound(config) == pytest.approx(20)
        assert play_lucky(config, lambda t, state: [0]) == 20

    def test_intensity_takes_a_step_each(self):
        assert sound(row_of_fires(1, (1,), fire={"ignition_temp": ((3,),)})) == (
            pytest.approx(6)
        )

    def test_a_fire_as_large_as_the_team(self):
        assert sound(row_of_fires(2, (3,))) == 0
        # One power more in pristine equipment: now two are enough.
        stronger = {"equipment_states": ((0.0,) * 3, (0.0,) * 3, (0.0, 1.0, 0.0))}
        assert sound(row_of_fires(2, (3,), agent=stronger)) == pytest.approx(20)

    def test_a_refill_takes_a_step(self):
        # fight fight refill, three times, and a fight: 7 of 10 steps.
        tank = {"suppressant_decrease_probability": 1.0}
        config = row_of_fires(1, (1,), agent=tank)
        assert sound(config) == pytest.approx(14)

        def whenever_armed(t, state):
            return [0 if state.suppressant[0] > 0 else None]

        assert play_lucky(config, whenever_armed) == 14

    def test_fuel_counts_ignitions(self):
        def fuelled(fuel: int, lit: bool) -> WildfireConfig:
            return row_of_fires(
                1,
                (1,),
                fire={"initial_fuel": fuel, "lit": ((lit,),)},
                stochastic={"fire_fuel": True},
            )

        assert sound(fuelled(3, lit=True)) == pytest.approx(6)
        assert sound(fuelled(3, lit=False)) == pytest.approx(6)
        assert sound(fuelled(0, lit=True)) == pytest.approx(2)
        assert sound(fuelled(0, lit=False)) == 0

    def test_what_cannot_ignite_again_is_put_out_once(self):
        closed = {"random_fire_ignition": False}
        assert sound(row_of_fires(1, (1, 1), stochastic=closed)) == pytest.approx(4)
        assert sound(row_of_fires(1, (1, 1, 0, 1), stochastic=closed)) == 6

    def test_spread_needs_a_neighbour_that_still_burns(self):
        # Two fires in ten steps: one of them in each, and in the last both.
        config = row_of_fires(
            2,
            (1, 1),
            fire={"base_spread_rate": 1.0},
            stochastic={"random_fire_ignition": False, "fire_spread": True},
        )
        assert sound(config) == pytest.approx(22)
        assert (
            play_lucky(config, lambda t, state: [t % 2, None if t < 9 else (t + 1) % 2])
            == 22
        )

    def test_a_share_for_those_who_fought(self):
        # Two of three can reach it, for two thirds of the reward.
        alone = {"attack_range": (1, 1, 0), "agents": ((0, 0), (0, 0), (0, 1))}
        config = row_of_fires(3, (1, 0), reward={"localize_putouts": True}, agent=alone)
        assert sound(config) == pytest.approx(20 * 2 / 3)

    def test_errors_and_ends_count(self):
        far = {"attack_range": (0,), "agents": ((0, 1),)}
        config = row_of_fires(1, (1, 0), agent=far, reward={"bad_attack_penalty": -3.0})
        least = counting.lower_bound(config, False, SECONDS)
        assert least.at_most == pytest.approx(2)  # it burns out once
        offered = replace(config, show_bad_actions=True)
        least = counting.lower_bound(offered, False, SECONDS)
        assert least.at_most == pytest.approx(2 + 30)
        ending = row_of_fires(1, (1,), reward={"termination_reward": 5.0})
        assert sound(ending) == pytest.approx(25)

    def test_means_know_the_probabilities(self):
        # One step, one fire, one agent: put out with probability 0.4.
        chance = {
            "fire": {"intensity_decrease_probability": 0.4},
            "stochastic": {"fire_decrease": True},
        }
        once = replace(row_of_fires(1, (1,), **chance), max_steps=1)
        assert sound(once) == pytest.approx(2)
        assert sound(once, mean=True) == pytest.approx(0.8)
        # A second agent brings the bonus of 0.15 for its power.
        twice = replace(row_of_fires(2, (1,), **chance), max_steps=1)
        assert sound(twice, mean=True) == pytest.approx(2 * 0.55)

    def test_means_know_how_rarely_a_cell_ignites(self):
        # Lit, ten steps, ignition 0.25: of P put-outs, P - 1 need an ignition, four
        # chances each: P at once and 10 - P from steps that began with it out.
        rare = row_of_fires(1, (1,), fire={"random_ignition_probability": 0.25})
        assert sound(rare, mean=True) == pytest.approx(2 * (1 + 0.25 * 10))

    def test_every_fire_burns_out_at_most_once(self):
        config = row_of_fires(1, (1, 1))
        assert counting.lower_bound(config, False, SECONDS).at_most == pytest.approx(4)
        # From intensity 1 to burnout it takes three steps.
        short = replace(config, max_steps=2)
        assert counting.lower_bound(short, False, SECONDS).at_most == 0


small_configs = wildfire_configs(2, 3).map(
    lambda config: replace(config, max_steps=1 + config.max_steps % STEPS)
)
"""Every rule in play on at most 2x3 cells for at most eight steps."""


@partial(jax.jit, static_argnames="episodes")
def play_randomly(game: Wildfire, key, luck, episodes: int) -> jax.Array:
    """Returns of random play; a part `luck` of the numbers is as extreme as can be."""
    play = partial(play_one, game, luck)
    return jax.vmap(play)(jax.random.split(key, episodes))


def play_one(game: Wildfire, luck, key) -> jax.Array:
    def one(carry, t):
        state, going, team_return = carry
        k_act, k_noise, k_luck = jax.random.split(jax.random.fold_in(key, t), 3)
        actions, _ = RulePolicy(uniform).act(k_act, game.observe(state), None)
        noise = jax.tree.map(partial(extreme, k_luck, luck), game.noise(k_noise))
        following, outcome = game.transition(state, actions, noise)
        reward = jnp.sum(outcome.reward, where=game.roster) / jnp.sum(game.roster)
        team_return += jnp.where(going, reward, 0.0)
        return (following, going & ~outcome.done, team_return), None

    start = (game.initial(key), jnp.array(True), jnp.zeros(()))
    (_, _, team_return), _ = jax.lax.scan(one, start, jnp.arange(STEPS))
    return team_return


def extreme(key, luck, numbers: jax.Array) -> jax.Array:
    kind = jax.random.uniform(key, numbers.shape)
    ends = jnp.where(kind < luck / 2, 0.0, 0.999999)
    return jnp.where(kind < luck, ends, numbers)


@given(small_configs, st.integers(0, 2**31 - 1))
def test_no_episode_leaves_the_sound_bounds(config, seed):
    bounds = wildfire_bounds(config)
    game = Wildfire.from_config(config, **ROOM)
    for luck in (0.0, 0.5, 0.95):
        played = np.asarray(play_randomly(game, jax.random.key(seed), luck, 128))
        assert played.max() <= bounds.upper_sound.value + 1e-4
        assert played.min() >= bounds.lower_sound.value - 1e-4
    assert bounds.upper_sound_mean.value <= bounds.upper_sound.value + 1e-9


@given(small_configs, st.integers(0, 2**31 - 1))
def test_no_mean_leaves_the_sound_bounds(config, seed):
    game = Wildfire.from_config(config, **ROOM)
    played = np.asarray(play_randomly(game, jax.random.key(seed), 0.0, 1024))
    error = 5 * played.std() / np.sqrt(len(played)) + 1e-4
    assert played.mean() <= sound(config, mean=True) + error
    least = counting.lower_bound(config, True, SECONDS).at_most
    assert played.mean() >= -least - error


class TestWhereThePaperFails:
    """Each play is possible, and beyond a bound of the paper."""

    def test_there_is_no_delay_of_ignition(self):
        config = row_of_fires(2, (1, 1))
        assert wildfire_bounds(config).upper_simple.value == 20
        assert play_lucky(config, lambda t, state: [0, 1]) == 40

    def test_the_simple_bound_on_a_setup_of_the_paper(self):
        config = load_setup("wildfire-2x3-S1").config
        bounds = wildfire_bounds(config)
        assert "upper_simple" in bounds.unproved

        def one_then_the_other(t, state):
            """One fire in each step, so that the other lights it; at last both."""
            # The third agent reaches only the second cell.
            armed = [n for n in (2, 1, 0) if state.suppressant[n] > 0]
            now = t % 2
            fighter = next(n for n in armed if n != 2 or now == 1)
            cells: list[int | None] = [None, None, None]
            cells[fighter] = now
            if t == config.max_steps - 1:
                cells[next(n for n in (0, 1) if n != fighter)] = 1 - now
            return cells

        lucky = play_lucky(config, one_then_the_other)
        assert lucky == 202 > bounds.upper_simple.value == 200
        assert lucky == pytest.approx(bounds.upper_sound.value)

    def test_the_program_on_a_setup_of_the_paper(self):
        # Its cycles start with a large fire, since that is worth more; small ones pay
        # more for the work.
        config = load_setup("wildfire-3x3-S2-transfer").config
        bounds = wildfire_bounds(config)
        small = [n for n, cell in enumerate(limits_of(config).cells) if cell.size == 1]
        reach = [agent.fights for agent in limits_of(config).agents]
        own = next(
            chosen
            for chosen in itertools.permutations(small, 3)
            if all(reach[n][x] for n, x in enumerate(chosen))
        )

        def each_its_own(t, state):
            armed = state.suppressant > 0
            return [x if armed[n] else None for n, x in enumerate(own)]

        lucky = play_lucky(config, each_its_own)
        assert lucky == 402 > bounds.upper_program.value == 400
        assert lucky == pytest.approx(bounds.upper_sound.value)

    def test_the_program_maximises_something_else(self):
        # The pair of agents is sent to the large fire, for 4 every two steps; one of
        # them alone earns 3 in every step at the small one.
        config = row_of_fires(
            2,
            (2, 1),
            fire={"ignition_temp": ((2, 1),)},
            reward={"fire_rewards": ((4.0, 3.0),)},
        )
        assert wildfire_bounds(config).upper_program.value == 20
        assert play_lucky(config, lambda t, state: [1, None]) == 30

    def test_the_program_counts_agents_and_not_their_power(self):
        config = row_of_fires(1, (2,), agent={"fire_reduction_power": (2.0,)})
        assert wildfire_bounds(config).upper_program.value == 0
        assert play_lucky(config, lambda t, state: [0]) == 20

    def test_a_lit_cell_needs_no_fuel(self):
        config = row_of_fires(
            1, (1,), fire={"initial_fuel": 0}, stochastic={"fire_fuel": True}
        )
        assert wildfire_bounds(config).upper_program.value == 0
        assert play_lucky(config, lambda t, state: [0]) == 2

    def test_a_hot_fire_burns_out_before_the_lower_bound_says_so(self):
        config = replace(
            row_of_fires(
                1,
                (1,),
                fire={"ignition_temp": ((3,),), "burnout_probability": 1.0},
            ),
            max_steps=1,
        )
        bounds = wildfire_bounds(config)
        assert bounds.lower_paper.value == 0
        assert bounds.unproved == ("lower_paper",)
        assert play_lucky(config, lambda t, state: [None]) == -2
        assert bounds.lower_sound.value == pytest.approx(-2)


@pytest.mark.parametrize("name", setup_names())
def test_optima_lie_below_the_mean_bound(name):
    setup = load_setup(name)
    optimum, bounds = known_optimum(setup), wildfire_bounds(setup.config)
    assert bounds.finished
    if optimum is None:  # one has never been solved
        assert name == "wildfire-4x4-S3-uneven"
        return
    assert bounds.lower_sound.value < optimum <= bounds.upper_sound_mean.value + 0.005
    assert bounds.upper_sound_mean.value <= bounds.upper_sound.value + 1e-6
    if name in OPTIMA:
        assert bounds.upper_sound_mean.value <= 1.7 * optimum


class TestPrograms:
    def test_time_that_is_up_leaves_a_bound(self):
        config = load_setup("wildfire-4x4-S3").config
        hurried, whole = wildfire_bounds(config, 1e-9), wildfire_bounds(config)
        assert whole.finished
        assert not hurried.finished
        for name in ("upper_program", "upper_sound", "upper_sound_mean"):
            assert getattr(hurried, name).value >= getattr(whole, name).value - 1e-6
        assert hurried.lower_sound.value <= whole.lower_sound.value + 1e-6

    def test_a_time_limit_is_more_than_nothing(self):
        with pytest.raises(PlatoError, match="more than 0"):
            wildfire_bounds(load_setup("wildfire-2x3-S0").config, 0.0)

    def test_whole_numbers_or_any(self):
        for whole, best in ((True, 3.0), (False, 3.5)):
            program = Program(whole=whole)
            x = program.variable()
            program.at_most(2.0 * x, 7)
            known = program.maximum(x, SECONDS)
            assert known.at_most == pytest.approx(best)
            assert known.found == pytest.approx(best)

    def test_presolve_would_lose_this_optimum(self):
        # Two fires grow for certain and burn out, perhaps, in the second and last step.
        config = row_of_fires(
            2,
            (1, 1),
            fire={"num_fire_states": 4, "initial_fuel": 0},
            agent={
                "agents": ((0, 0), (0, 1)),
                "attack_range": (0, 0),
                "initial_suppressant": 0,
                "capacity_probabilities": (0.25, 0.5, 0.25),
                "suppressant_decrease_probability": 1.0,
            },
            reward={
                "fire_rewards": ((0.0, 0.0),),
                "burnout_penalty_scaled": False,
                "burnout_penalty": -1.5,
            },
            stochastic={"random_fire_ignition": False, "fire_increase": False},
        )
        least = counting.lower_bound(replace(config, max_steps=2), False, SECONDS)
        assert least.at_most == pytest.approx(3)

    def test_nothing_that_can_burn(self):
        empty = changed(
            row_of_fires(1, (1,)),
            fire={"fire_types": ((0,),), "lit": ((False,),)},
        )
        bounds = wildfire_bounds(empty)
        assert {b["value"] for b in bounds.to_json().values()} == {0.0}


class TestLimits:
    def test_fire_moves_a_cell_a_step(self):
        config = row_of_fires(
            1,
            (1, 1, 1, 0, 1),
            fire={"lit": ((True, False, False, False, False),)},
            stochastic={"random_fire_ignition": False, "fire_spread": True},
        )
        steps = [cell.unlit_steps for cell in limits_of(config).cells]
        assert steps == [0, 1, 2, config.max_steps + 1]

    def test_equipment_that_never_wears(self):
        config = row_of_fires(1, (1,), agent={"degrade_probability": 0.0})
        assert equipment_in_play(config.agent, odds_in_force(config)) == {2}
        worn = changed(config, agent={"degrade_probability": 0.1})
        assert equipment_in_play(worn.agent, odds_in_force(worn)) == {0, 1, 2}

    def test_a_tank_of_probability_zero_is_not_counted_on(self):
        config = row_of_fires(1, (1,))
        tanks = [agent.fights_per_refill for agent in limits_of(config).agents]
        assert config.agent.capacity_probabilities == (0.0, 1.0, 0.0)
        assert tanks == [2]

    def test_the_odds_are_those_of_the_game(self):
        config = load_setup("wildfire-4x4-S3").config
        rules, odds = rules_from_config(config), odds_in_force(config)
        assert float(rules.refill_probability) == pytest.approx(odds.refill)
        assert rules.spread_rates.tolist() == pytest.approx(odds.spread)
