"""Each setup of a training has a scale of its own."""

import jax
import jax.numpy as jnp
import numpy as np

from plato.learners.targets import Played, Scale, targets

TIME, GAMES, AGENTS = 7, 6, 3
RATES = (jnp.asarray(0.9), jnp.asarray(0.8))


def made(seed: int) -> Played:
    """What may have been played, with both kinds of endings in it."""
    random = np.random.default_rng(seed)
    shape = (TIME, GAMES)
    done = random.random(shape) < 0.3
    return Played(
        value=jnp.asarray(random.normal(size=shape), jnp.float32),
        following=jnp.asarray(random.normal(size=shape), jnp.float32),
        reward=jnp.asarray(random.normal(size=shape), jnp.float32),
        terminated=jnp.asarray(done & (random.random(shape) < 0.5)),
        done=jnp.asarray(done),
        choice=jnp.asarray(random.random((*shape, AGENTS)) < 0.6),
    )


def test_values_of_each_block_of_games_are_as_if_it_were_alone() -> None:
    played = made(0)
    scale = Scale(jnp.asarray([2.0, -1.0]), jnp.asarray([9.0, 4.0]), jnp.ones(2))
    later, found = targets(scale, played, *RATES, normalise=True, setups=2)
    for block, games in enumerate((slice(0, 3), slice(3, 6))):
        own = Scale(scale.mean[block], scale.square[block], scale.weight[block])
        part = jax.tree.map(lambda leaf, games=games: leaf[:, games], played)
        alone, expected = targets(own, part, *RATES, normalise=True, setups=1)
        for name in ("value", "target"):
            ours, theirs = getattr(found, name)[:, games], getattr(expected, name)
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(later.mean[block], alone.mean, rtol=1e-6)
        np.testing.assert_allclose(later.square[block], alone.square, rtol=1e-6)


def test_advantages_count_in_steps_worth_of_the_rewards_of_their_setup() -> None:
    """By hand; the games of the second setup hardly differ in what they bring."""
    zero = jnp.zeros((TIME, GAMES))
    solved = jnp.where(jnp.arange(GAMES) < 3, 0.0, 5.0)[None]
    reward = solved + made(3).reward * jnp.where(solved > 0, 0.01, 1.0)
    last = jnp.ones((TIME, GAMES), bool)  # of an episode: the return is the reward
    value = solved + zero
    played = Played(value, zero, reward, last, last, jnp.ones((TIME, GAMES, 1), bool))
    _, found = targets(Scale.create(2), played, *RATES, normalise=True, setups=2)
    parts = np.array(reward - value)
    for games in (slice(0, 3), slice(3, 6)):
        parts[:, games] /= np.abs(np.asarray(reward)[:, games]).mean()
    expected = (parts - parts.mean()) / parts.std()
    np.testing.assert_allclose(found.advantage, expected, rtol=1e-3, atol=1e-4)
    assert np.ptp(found.advantage[:, 3:]) < 0.1


def test_what_a_setup_pays_does_not_change_what_is_learned_from_it() -> None:
    """A hundred times the rewards in half of the games; values begin at nothing."""
    zero = jnp.zeros((TIME, GAMES))
    played = made(1)._replace(value=zero, following=zero)
    rich = jnp.where(jnp.arange(GAMES) < 3, 100.0, 1.0)[None]
    richer = played._replace(reward=played.reward * rich)
    settings = {"normalise": True, "setups": 2}
    before, plain = targets(Scale.create(2), played, *RATES, **settings)
    after, other = targets(Scale.create(2), richer, *RATES, **settings)
    np.testing.assert_allclose(plain.advantage, other.advantage, rtol=1e-4, atol=1e-5)
    spread = np.asarray(after.moments()[1] / before.moments()[1])
    np.testing.assert_allclose(spread, [100.0, 1.0], rtol=1e-4)
    np.testing.assert_allclose(plain.target, other.target, rtol=1e-3, atol=1e-4)


def test_a_setup_without_any_reward_yet_is_no_number_out_of_nothing() -> None:
    played = made(4)
    nothing = played._replace(reward=played.reward.at[:, :3].set(0.0))
    _, found = targets(Scale.create(2), nothing, *RATES, normalise=True, setups=2)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found))


def test_nobody_with_a_choice_is_no_number_out_of_nothing() -> None:
    played = made(2)
    nobody = played._replace(choice=jnp.zeros_like(played.choice))
    _, found = targets(Scale.create(3), nobody, *RATES, normalise=True, setups=3)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found))
