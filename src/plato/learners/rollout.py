"""Experience: many games played side by side by the current policy."""

from functools import partial
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from plato.game import Game, Observation, how_many, select, take_turn


@runtime_checkable
class Beginner(Protocol):
    """Who can begin an episode."""

    def start(self, agents: int) -> Any:
        """The memory with which it begins."""
        ...


@runtime_checkable
class Player(Beginner, Protocol):
    """A policy while it learns: it explores, and notes what learning needs to know."""

    def explore(
        self, key: PRNGKeyArray, observation: Observation, memory: Any
    ) -> tuple[Int[Array, " agent"], Any, Any]:
        """One action for each agent, a note on the choice, and the memory to go on."""
        ...


class Stage(eqx.Module):
    """Where every game stands between two rollouts."""

    state: Any
    observation: Observation
    memory: Any
    started: Bool[Array, "*game"]
    """Whether the current moment is the first of its episode."""
    episode_return: Float[Array, "*game"]


class Experience(eqx.Module):
    """What was seen and done, time first, then games."""

    observation: Observation
    final_observation: Observation
    started: Bool[Array, "*time_game"]
    actions: Int[Array, "*time_game agent"]
    record: Any
    """What the player noted about its choice."""
    reward: Float[Array, "*time_game"]
    terminated: Bool[Array, "*time_game"]
    done: Bool[Array, "*time_game"]
    finished: Bool[Array, "*time_game"]
    """Where an episode came to its own end."""
    finished_return: Float[Array, "*time_game"]
    """The return of that episode, 0 elsewhere."""

    def report(self) -> dict[str, Array]:
        """How the games went, whatever the method: `ended` and `total` of each game."""
        return {
            "ended": jnp.sum(self.finished, axis=0),
            "total": jnp.sum(self.finished_return, axis=0),
            "reward": self.reward.mean(),
        }


def set_the_stage(games: Game[Any, Any], player: Beginner, key: PRNGKeyArray) -> Stage:
    """Begins all games; `games` are stacked."""
    count = how_many(games)
    state, observation = jax.vmap(lambda game, key: game.reset(key))(
        games, jax.random.split(key, count)
    )
    one = player.start(games.capacity.agents)
    memory = jax.tree.map(lambda leaf: jnp.stack([leaf] * count), one)
    return Stage(state, observation, memory, jnp.ones(count, bool), jnp.zeros(count))


def rollout(
    games: Game[Any, Any],
    player: Player,
    stage: Stage,
    key: PRNGKeyArray,
    steps: int,
    restart: Float[Array, ""] | float = 0.0,
) -> tuple[Stage, Experience]:
    """Plays all games on for some steps; those that end begin anew.

    Any other begins anew with a chance of `restart` at every step, cut as if by a time
    limit: moments early in an episode are then met more often.
    """
    chances = _draw_all(games, key, steps, jnp.asarray(restart))
    play = jax.vmap(partial(_play, player))
    return jax.lax.scan(lambda stage, now: play(games, stage, now), stage, chances)


class Chance(eqx.Module):
    """What chance decides in one step of a game."""

    player: PRNGKeyArray
    noise: Any
    reset: PRNGKeyArray
    cut: Bool[Array, ""]


def _draw_all(
    games: Game[Any, Any], key: PRNGKeyArray, steps: int, restart: Float[Array, ""]
) -> Chance:
    """All chance of a rollout: beforehand and at once is faster than step by step.

    It is drawn along one axis, steps and games, for that takes less to compile.
    """
    count = how_many(games)
    moments = jax.vmap(partial(jax.random.fold_in, key))(jnp.arange(steps))
    keys = jax.vmap(partial(jax.random.split, num=count))(moments).reshape(-1)
    again = jax.tree.map(lambda leaf: jnp.concatenate([leaf] * steps), games)
    chances = jax.vmap(partial(_draw, restart))(again, keys)
    return jax.tree.map(lambda x: x.reshape(steps, count, *x.shape[1:]), chances)


def _draw(restart: Float[Array, ""], game: Game[Any, Any], key: PRNGKeyArray) -> Chance:
    key_act, key_step, key_cut = jax.random.split(key, 3)
    key_noise, key_reset = jax.random.split(key_step)
    cut = jax.random.uniform(key_cut) < restart
    return Chance(key_act, game.noise(key_noise), key_reset, cut)


def _play(
    player: Player, game: Game[Any, Any], stage: Stage, chance: Chance
) -> tuple[Stage, Experience]:
    seen, cut = stage.observation, chance.cut
    actions, record, memory = player.explore(chance.player, seen, stage.memory)
    turn = take_turn(game, chance.noise, chance.reset, stage.state, actions, cut)
    done = turn.outcome.done
    reward = jnp.sum(turn.outcome.reward, where=game.roster) / jnp.sum(game.roster)
    so_far = stage.episode_return + reward
    following = Stage(
        state=turn.state,
        observation=turn.observation,
        memory=select(done, player.start(game.capacity.agents), memory),
        started=done,
        episode_return=jnp.where(done, 0.0, so_far),
    )
    experience = Experience(
        observation=seen,
        final_observation=turn.final_observation,
        started=stage.started,
        actions=actions,
        record=record,
        reward=reward,
        terminated=turn.outcome.terminated,
        done=done,
        finished=done & ~cut,
        finished_return=jnp.where(done & ~cut, so_far, 0.0),
    )
    return following, experience
