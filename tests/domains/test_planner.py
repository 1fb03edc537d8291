"""The planner's assignments worked by hand, its gains against the dynamics."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from parcels import Parcels
from plato.domains.setups import load_setup
from plato.domains.wildfire import squads as squads_module
from plato.domains.wildfire.config import WildfireConfig
from plato.domains.wildfire.crews import NOBODY, level_of
from plato.domains.wildfire.dynamics import WildfireState
from plato.domains.wildfire.game import Wildfire
from plato.domains.wildfire.planner import AssignmentPolicy
from plato.errors import PlatoError
from plato.evaluation.evaluate import evaluate
from plato.evaluation.named import named_policy


def config_of(name: str, steps: int = 10) -> WildfireConfig:
    return replace(load_setup(f"wildfire-{name}").config, max_steps=steps)


def worn(config: WildfireConfig) -> WildfireConfig:
    """With all that the shipped setups leave out."""
    agent = replace(
        config.agent,
        fire_reduction_power=(1.0, 2.0, 1.0),
        equipment_states=((-1.0, -0.5, -1.0), (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
        degrade_probability=0.4,
        repair_probability=0.3,
        capacity_probabilities=(0.25, 0.5, 0.25),
        tank_switch_probability=0.5,
    )
    stochastic = replace(config.stochastic, repair=True, tank_switch=True)
    reward = replace(config.reward, localize_putouts=True, bad_attack_penalty=-3.0)
    return replace(
        config, agent=agent, stochastic=stochastic, reward=reward, show_bad_actions=True
    )


PAIR = Wildfire.from_config(config_of("2x3-S3"))
"""A fire of size 1 that all reach, one of size 2 that agents 2 and 3 reach."""
PAIR_PLANNER = AssignmentPolicy.from_rules(PAIR.rules)
CONFIGS = {
    "3x3": config_of("3x3-S3"),
    "uneven": config_of("2x3-S3-uneven"),
    "5x5": config_of("5x5-S3-transfer"),
    "worn": worn(config_of("3x3-S3")),
}


def at_last_step(intensity: list[int], suppressant=(2.0, 2.0, 2.0)) -> WildfireState:
    values = jnp.asarray(intensity, jnp.int32)
    return replace(
        PAIR.initial(jax.random.key(0)),
        intensity=values,
        burning=(values > 0) & (values < 4),
        suppressant=jnp.asarray(suppressant, jnp.float32),
        time=jnp.asarray(9, jnp.int32),
    )


def random_states(game: Wildfire, count: int) -> WildfireState:
    """States of any intensity, level and time, along a first axis."""
    random = np.random.default_rng(0)
    first = game.initial(jax.random.key(0))
    agents, tasks, _ = game.capacity
    highest = int(game.rules.burnt_out)

    def integers(most: int, *shape: int):
        return random.integers(0, most, (count, *shape), np.int32)

    # In NumPy: JAX would compile every operation for every shape.
    intensity = integers(highest + 1, tasks)
    changes = {
        "intensity": intensity,
        "burning": (intensity > 0) & (intensity < highest),
        "suppressant": integers(3, agents).astype(np.float32),
        "equipment": integers(int(game.rules.pristine) + 1, agents),
        "time": integers(int(game.rules.max_steps)),
    }
    alike = jax.tree.map(
        lambda leaf: np.broadcast_to(leaf, (count, *leaf.shape)), first
    )
    states = eqx.tree_at(
        lambda states: [getattr(states, name) for name in changes],
        alike,
        list(changes.values()),
    )
    return jax.device_put(states)


def decide(policy: AssignmentPolicy, game: Wildfire, states: WildfireState):
    """The actions in many states at once."""

    def one(state: WildfireState):
        key = jax.random.key(0)
        return policy.act_knowing(key, state, game.observe(state), None)[0]

    return np.asarray(jax.jit(jax.vmap(one))(states))


@pytest.mark.parametrize(
    ("intensity", "suppressant", "actions", "gain"),
    [
        # The large fire would burn out (-4 by 1/2): held by two; 2 by 1/2 for the other
        ([1, 3], (2, 2, 2), [1, 2, 2], 1.0),
        # Both may be put out: 2 by 1/2 and 4 by 1/2
        ([1, 1], (2, 2, 2), [1, 2, 2], 3.0),
        # Nothing can happen to the large one in a step: all on the other, 2 by 0.8
        ([1, 2], (2, 2, 2), [1, 1, 1], 1.6),
        # Agent 3 is dry, so nobody can hold the large one: 2 by 0.65, -4 by 1/2
        ([1, 3], (2, 2, 0), [1, 1, 0], -0.7),
        # The large one alone, and nothing for agent 1 to do
        ([4, 1], (2, 2, 2), [0, 2, 2], 2.0),
        ([0, 0], (2, 2, 2), [0, 0, 0], 0.0),
    ],
)
def test_the_last_step_worked_by_hand(intensity, suppressant, actions, gain):
    state = at_last_step(intensity, suppressant)
    assigned, found = planned(state, jnp.asarray(actions, jnp.int32))
    assert assigned.tolist() == actions
    np.testing.assert_allclose(found, gain, atol=1e-6)


@jax.jit
def planned(state: WildfireState, actions):
    """What the planner does, and what some actions gain by its account."""
    outlook = PAIR_PLANNER.outlook(state, PAIR_PLANNER.divide(state))
    return PAIR_PLANNER.assign(state), outlook.gain(actions)


def crew_of(policy: AssignmentPolicy, fire: int, *members: int) -> int:
    """The row of a crew."""
    crews = policy.options.crews
    who = [*members, *[NOBODY] * (crews.size - len(members))]
    same = (np.asarray(crews.members) == who).all(axis=1)
    return int(np.flatnonzero(same & (np.asarray(crews.fire) == fire))[0])


def test_values_of_one_and_two_steps_worked_by_hand():
    worth = np.asarray(PAIR_PLANNER.worth.alone)
    shape = (*worth.shape[:3], 3, 3, 3)  # none, 1 or 2 fights left, of three members
    worth = worth.reshape(shape)
    single = worth[:, crew_of(PAIR_PLANNER, 0, 0), :, :, 0, 0]
    # Size 1, put out for 2 by 1/2; unopposed at the last intensity, burnt out by 1/2.
    assert single[1, 1].tolist() == [0, 1, 1]
    assert single[1, 3].tolist() == [-1, 0, 0]
    # Two steps. Dry: not grown by 0.3, refilled by 0.6, then 1. With one fight: 1 now,
    # nothing after. With two: 2 and, lit again by 0.6, another 1; or the same again.
    np.testing.assert_allclose(single[2, 1], [0.3 * 0.6, 1, 1.8], atol=1e-6)
    pair = worth[:, crew_of(PAIR_PLANNER, 1, 1, 2), :, :, :, 0]
    # Size 2, put out for 4, takes both.
    assert pair[1, 1].tolist() == [[0, 0, 0], [0, 2, 2], [0, 2, 2]]
    assert pair[1, 3].tolist() == [[-2, -2, -2], [-2, 0, 0], [-2, 0, 0]]
    nobody = worth[:, crew_of(PAIR_PLANNER, 0), :, 0, 0, 0]
    np.testing.assert_allclose(nobody[2, 2], -0.7 * 0.5 * 2, atol=1e-6)


def test_a_division_worked_by_hand():
    chosen = PAIR_PLANNER.divide(at_last_step([1, 3]))
    # All reach the first fire, but the second can only be held by agents 2 and 3.
    crews = [crew_of(PAIR_PLANNER, 0, 0), crew_of(PAIR_PLANNER, 1, 1, 2)]
    assert chosen.tolist() == crews


def test_the_gain_is_an_expectation():
    """Against the mean over the noise of the dynamics, where no fire spreads."""
    game = Wildfire.from_config(config_of("3x3-S3"))
    policy = AssignmentPolicy.from_rules(game.rules)
    choices = policy.options.squads.choices[0]
    keys = jax.random.split(jax.random.key(1), 20_000)

    @jax.jit
    def both(state: WildfireState, actions):
        chosen = policy.divide(state)
        members = policy.options.crews.members[chosen]

        def one(key):
            following, outcome = game.transition(state, actions, game.noise(key))
            level = level_of(following.suppressant, 3)
            own = jnp.where(members == NOBODY, 0, level[members])
            place = 3 * own[:, 0] + own[:, 1]
            togo = game.rules.max_steps - following.time
            worth = policy.worth.fed[togo, chosen, following.intensity, place]
            return outcome.reward[0] + worth.sum()

        return policy.outlook(state, chosen).gain(actions), jax.vmap(one)(keys).mean()

    assert policy.options.crews.size == 2
    compared = 0
    states = random_states(game, 80)
    for i in range(80):
        state = jax.tree.map(lambda leaf, i=i: leaf[i], states)
        gain, mean = both(state, choices[(7 * i) % len(choices)])
        if np.isfinite(gain):
            compared += 1
            np.testing.assert_allclose(gain, mean, atol=0.1)
    assert compared > 5


@pytest.mark.parametrize("name", CONFIGS)
def test_assignments_are_legal_one_by_one_or_together(name):
    game = Wildfire.from_config(CONFIGS[name])
    policy = AssignmentPolicy.from_rules(game.rules)
    states = random_states(game, 64)
    actions = decide(policy, game, states)
    offered = jax.jit(jax.vmap(lambda state: game.observe(state).action_mask))
    legal = np.asarray(offered(states))
    assert np.take_along_axis(legal, actions[:, :, None], axis=2).all()
    assert actions.any()
    single = jax.jit(lambda state: policy.assign(state))
    for i in range(0, 64, 16):
        state = jax.tree.map(lambda leaf, i=i: leaf[i], states)
        assert single(state).tolist() == actions[i].tolist()


def test_spare_rows_change_nothing():
    config = CONFIGS["3x3"]
    game = Wildfire.from_config(config)
    large = Wildfire.from_config(config, agents=5, tasks=7)
    plain = AssignmentPolicy.from_rules(game.rules)
    states = random_states(game, 32)

    def grown(leaf, to):
        spare = [n - have for n, have in zip(to, leaf.shape[1:], strict=True)]
        return jnp.pad(leaf, [(0, 0), *((0, n) for n in spare)])

    blank = large.initial(jax.random.key(0))
    wide = jax.tree.map(lambda leaf, like: grown(leaf, like.shape), states, blank)
    expected = decide(plain, game, states)
    for policy in (plain, AssignmentPolicy.from_rules(large.rules)):
        found = decide(policy, large, wide)
        np.testing.assert_array_equal(found[:, :3], expected)
        assert not found[:, 3:].any()


def test_a_team_too_large_to_weigh_at_once_is_cut_into_squads(monkeypatch):
    game = Wildfire.from_config(CONFIGS["3x3"])
    whole = AssignmentPolicy.from_rules(game.rules)
    assert whole.options.squads.members.tolist() == [[0, 1, 2]]
    monkeypatch.setattr(squads_module, "LARGEST_SQUAD", 15)
    squads = AssignmentPolicy.from_rules(game.rules)
    assert squads.options.squads.members.tolist() == [[0, 1], [2, 3]]  # 3: nobody
    states = random_states(game, 64)

    @jax.jit
    @jax.vmap
    def gains(state, actions):
        return whole.outlook(state, whole.divide(state)).gain(actions)

    best = np.asarray(gains(states, decide(whole, game, states)))
    found = np.asarray(gains(states, decide(squads, game, states)))
    assert (found <= best + 1e-4).all()
    assert np.mean(found > best - 0.05) > 0.7


def test_it_beats_the_rules_of_thumb():
    setup = "wildfire-3x3-S3"
    returns = {
        name: evaluate(name, setup, episodes=40).metrics["return"].mean()
        for name in ("assignment", "weakest", "strongest")
    }
    assert returns["assignment"] > 80 > 60 > returns["weakest"] > returns["strongest"]


def test_it_improves_on_the_best_fixed_division():
    config = load_setup("wildfire-3x3-S2").config
    game = Wildfire.from_config(config)
    policy = AssignmentPolicy.from_rules(game.rules)
    state = game.initial(jax.random.key(0))
    crews = policy.divide(state)
    # All tanks are full at the start: the last of the levels.
    there = policy.options.crews.members[crews] != NOBODY
    place = jnp.where(there, jnp.asarray([[6, 2]]), 0).sum(axis=1)
    fixed = policy.worth.alone[100, crews, state.intensity, place].sum()
    found = evaluate(policy, game, episodes=40).metrics["return"].mean()
    assert found > float(fixed) > 60


def test_it_needs_wildfire_and_its_state():
    observation = PAIR.observe(at_last_step([1, 1]))
    with pytest.raises(PlatoError, match="whole state"):
        PAIR_PLANNER.act(jax.random.key(0), observation, None)
    with pytest.raises(PlatoError, match="rules of wildfire"):
        named_policy("assignment", Parcels(jnp.asarray(0.5), jnp.asarray(5)))
    assert isinstance(named_policy("assignment", PAIR), AssignmentPolicy)
