"""Seeded episodes of any policy in any game, many at once in one compiled program."""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from plato.game import NOOP, Game, Observation, select
from plato.policies.policy import Policy


class Tally(eqx.Module):
    """What is counted in an episode."""

    team_return: Float[Array, ""]
    """Sum of rewards, averaged over the agents of the roster."""
    steps: Int[Array, ""]
    decisions: Int[Array, ""]
    """Agent-steps played, by present and absent agents."""
    noops: Int[Array, ""]
    events: dict[str, Int[Array, ""]]


class Moment(eqx.Module):
    """Where an episode stands between two steps."""

    state: Any
    observation: Observation
    memory: Any
    tally: Tally
    going: Bool[Array, ""]


class EpisodeKeys(NamedTuple):
    """What drives the noise of a game and the choices of a policy."""

    game: PRNGKeyArray
    policy: PRNGKeyArray


def play(
    game: Game[Any, Any], policy: Policy[Any], key: PRNGKeyArray, horizon: int
) -> Tally:
    """One episode from a key; `horizon` is static and at least the game's own."""
    first, keys = begin(game, policy, key)
    one_step = partial(_play_step, game, policy, keys)
    last, _ = jax.lax.scan(one_step, first, jnp.arange(horizon))
    return last.tally


def begin(
    game: Game[Any, Any], policy: Policy[Any], key: PRNGKeyArray
) -> tuple[Moment, EpisodeKeys]:
    """The first moment of the episode of a key, and what drives the others."""
    key_reset, key_game, key_policy = jax.random.split(key, 3)
    state, observation = game.reset(key_reset)
    memory = policy.start(game.capacity.agents)
    first = Moment(state, observation, memory, _empty(game, state), jnp.array(True))
    return first, EpisodeKeys(key_game, key_policy)


@partial(jax.jit, static_argnames=("horizon", "policy_per_episode"))
def play_all(
    game: Game[Any, Any],
    policy: Policy[Any],
    keys: Key[Array, " episode"],
    horizon: int,
    policy_per_episode: bool = False,
) -> Tally:
    """An episode for each key; with `policy_per_episode`, policies are stacked too."""
    axes = (None, 0 if policy_per_episode else None, 0)
    episode = partial(play, horizon=horizon)
    return jax.vmap(episode, in_axes=axes)(game, policy, keys)


def _play_step(
    game: Game[Any, Any],
    policy: Policy[Any],
    keys: EpisodeKeys,
    moment: Moment,
    time: Int[Array, ""],
) -> tuple[Moment, None]:
    following, _ = advance(game, policy, keys, moment, time)
    return following, None


def advance(
    game: Game[Any, Any],
    policy: Policy[Any],
    keys: EpisodeKeys,
    moment: Moment,
    time: Int[Array, ""],
) -> tuple[Moment, Int[Array, " agent"]]:
    """The moment after a step, and the actions that led to it; the end stays as is."""
    actions, memory = policy.act_knowing(
        jax.random.fold_in(keys.policy, time),
        moment.state,
        moment.observation,
        moment.memory,
    )
    state, observation, outcome = game.step(
        jax.random.fold_in(keys.game, time), moment.state, actions
    )
    roster = game.roster
    team_reward = jnp.sum(outcome.reward, where=roster) / jnp.sum(roster)
    seen = Tally(
        team_return=team_reward,
        steps=jnp.ones((), jnp.int32),
        decisions=jnp.sum(roster, dtype=jnp.int32),
        noops=jnp.sum(roster & (actions == NOOP), dtype=jnp.int32),
        events=outcome.events,
    )
    following = Moment(
        state,
        observation,
        memory,
        jax.tree.map(jnp.add, moment.tally, seen),
        ~outcome.done,
    )
    return select(moment.going, following, moment), actions


def _empty(game: Game[Any, Any], state: Any) -> Tally:
    """A tally of zeros, with the events that this game counts."""
    nobody = jnp.zeros(game.capacity.agents, jnp.int32)
    key = jax.random.key(0)
    _, _, outcome = jax.eval_shape(game.step, key, state, nobody)
    zero = jnp.zeros((), jnp.int32)
    events = dict.fromkeys(outcome.events, zero)
    return Tally(jnp.zeros(()), zero, zero, zero, events)
