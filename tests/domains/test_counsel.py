"""The planner as an adviser: what it says from what is seen, on many maps at once."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plato.domains.setups import load_setup
from plato.domains.wildfire import squads
from plato.domains.wildfire.config import WildfireConfig
from plato.domains.wildfire.counsel import LARGEST_CREW, Counsel, counsels, sizes_of
from plato.domains.wildfire.crews import NOBODY, Sizes
from plato.domains.wildfire.dynamics import WildfireState
from plato.domains.wildfire.game import Wildfire
from plato.domains.wildfire.maps import scattered_config
from plato.domains.wildfire.planner import AssignmentPolicy
from plato.domains.wildfire.squads import divisions, divisions_in

STEPS = 10


def config_of(name: str) -> WildfireConfig:
    return replace(load_setup(f"wildfire-{name}").config, max_steps=STEPS)


def states(game: Wildfire, count: int) -> WildfireState:
    """In the midst of a game, of any intensity and suppressant."""
    random = np.random.default_rng(0)
    first = game.initial(jax.random.key(0))
    agents, tasks, _ = game.capacity
    size = np.asarray(game.rules.size)
    intensity = np.where(size > 0, random.integers(0, 5, (count, tasks)), 0)
    changes = {
        "intensity": intensity.astype(np.int32),
        "burning": (intensity > 0) & (intensity < int(game.rules.burnt_out)),
        "suppressant": random.integers(0, 3, (count, agents)).astype(np.float32),
        "time": np.full(count, STEPS - (STEPS // 2 + 1), np.int32),
    }
    alike = jax.tree.map(
        lambda leaf: np.broadcast_to(leaf, (count, *leaf.shape)), first
    )
    found = eqx.tree_at(
        lambda s: [getattr(s, name) for name in changes], alike, list(changes.values())
    )
    return jax.device_put(found)


def advised(counsel: Counsel, game: Wildfire, moments: WildfireState) -> np.ndarray:
    """The actions that a counsel is certain of."""
    said = jax.jit(jax.vmap(lambda s: counsel.log_policy(game.observe(s))))(moments)
    certain = np.exp(np.asarray(said))
    np.testing.assert_array_equal(certain.sum(axis=2), 1.0)
    assert set(np.unique(certain)) == {0.0, 1.0}
    return certain.argmax(axis=2)


@pytest.mark.parametrize("name", ["2x3-S1", "3x3-S3", "5x5-S3-transfer"])
def test_in_the_midst_of_a_game_it_says_what_the_planner_does(name, monkeypatch):
    """With room for more agents and fires than there are, and beside another map."""
    monkeypatch.setattr(squads, "LARGEST_CREW", LARGEST_CREW)
    config = config_of(name)
    planner = AssignmentPolicy.from_rules(Wildfire.from_config(config).rules)
    game = Wildfire.from_config(config, agents=4, tasks=9)
    other = Wildfire.from_config(config_of("3x3-S1"), agents=4, tasks=9)
    both = counsels(sizes_of([game.rules, other.rules]), [game.rules, other.rules])
    first = jax.tree.map(lambda leaf: leaf[0], both)
    moments = states(game, 200)
    does = np.asarray(
        jax.jit(jax.vmap(lambda s: planner.assign(planner._own_rows(s))))(moments)
    )
    says = advised(first, game, moments)
    agents = does.shape[1]
    assert len(np.unique(does)) > 2
    np.testing.assert_array_equal(says[:, :agents], does)
    np.testing.assert_array_equal(says[:, agents:], 0)


def test_it_is_silent_where_nothing_comes_back():
    rules = [
        Wildfire.from_config(config_of(name), agents=3, tasks=4).rules
        for name in ("3x3-S0", "3x3-S1", "2x3-S1", "3x3-S2", "3x3-S3")
    ]
    given = counsels(sizes_of(rules), rules).given
    # On 3×3 S1 fires could spread, but none has a neighbour.
    assert given.tolist() == [False, False, True, True, True]


def test_advice_is_legal_on_any_map():
    """On 20 scattered ones in the same program, at moments of all kinds."""
    random, config = np.random.default_rng(1), config_of("3x3-S3")
    games = [
        Wildfire.from_config(scattered_config(config, 3, 6, random), agents=3, tasks=6)
        for _ in range(20)
    ]
    each = counsels(sizes_of([games[0].rules]), [game.rules for game in games])
    for place, game in enumerate(games):
        moments = states(game, 25)
        counsel = jax.tree.map(lambda leaf, i=place: leaf[i], each)
        said = advised(counsel, game, moments)
        seen = jax.vmap(game.observe)(moments)
        legal = jax.vmap(lambda one: one.action_mask)(seen)
        assert np.take_along_axis(np.asarray(legal), said[:, :, None], axis=2).all()


@pytest.mark.parametrize("name", ["3x3-S3", "4x4-S2", "5x5-S1-transfer"])
def test_spare_rows_change_no_division(name):
    """What is listed in limited arrays is what is listed in those of its own size."""
    rules = Wildfire.from_config(config_of(name)).rules
    sizes = Sizes.of(rules)
    own, roomy = divisions(rules, sizes), divisions_in(rules, crew=4, joint=1024)
    agents, tasks = rules.power.shape[0], rules.size.shape[0]
    crews, choices = own.crews, own.squads
    count = len(crews.fire)
    np.testing.assert_array_equal(roomy.crews.fire[:count], crews.fire)
    np.testing.assert_array_equal(
        roomy.crews.members[:count, : crews.size], crews.members
    )
    assert (roomy.crews.members[count:] == NOBODY).all()
    shape = choices.choices.shape
    inside = tuple(map(slice, shape))
    np.testing.assert_array_equal(roomy.squads.choices[inside], choices.choices)
    np.testing.assert_array_equal(
        roomy.squads.crews[: shape[0], : shape[1]], choices.crews
    )
    # All others leave every fire the crew of nobody, and everyone idle.
    assert (roomy.squads.choices[shape[0] :] == 0).all()
    assert (roomy.squads.choices[:, shape[1] :] == 0).all()
    np.testing.assert_array_equal(
        roomy.squads.crews[:, shape[1] :],
        np.broadcast_to(np.arange(tasks), (agents, 1024 - shape[1], tasks)),
    )
    assert (roomy.squads.members[shape[0] :] == agents).all()


def test_large_teams_are_cut_into_squads_that_fit():
    rules = Wildfire.from_config(config_of("4x4-S3")).rules
    found = divisions_in(rules, crew=2, joint=32)
    members = np.asarray(found.squads.members)
    own = [row[row < 6].tolist() for row in members]
    assert sorted(agent for squad in own for agent in squad) == list(range(6))
    assert len([squad for squad in own if squad]) > 1
    assert found.squads.choices.shape[1] == 32
    assert found.crews.members.shape[1] == 2


def test_sizes_hold_those_of_all():
    more = replace(
        config_of("2x3-S1"),
        max_steps=2 * STEPS,
        agent=replace(config_of("2x3-S1").agent, initial_suppressant=(3, 3, 3)),
    )
    both = [Wildfire.from_config(c).rules for c in (config_of("3x3-S3"), more)]
    common = sizes_of(both)
    assert (common.steps, common.levels) == (2 * STEPS, 4)
    assert common.burnt_out == int(jnp.max(both[0].burnt_out))
