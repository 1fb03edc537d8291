"""One episode with everything that is shown of it, as arrays.

A recording knows agents, tasks, choices and probabilities, of any game; what else a
domain shows it reads from the states.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from plato.domains.setups import Setup
from plato.evaluation.episodes import EpisodeKeys, Moment, Tally, advance, begin
from plato.evaluation.evaluate import NoiseProtocol, noisy_game, player_at
from plato.evaluation.metrics import EpisodeMetrics, episode_metrics
from plato.game import Game, Observation, ReplayedState
from plato.policies.dicg import DicgActor
from plato.policies.pointer import PointerActor
from plato.policies.policy import Policy
from plato.policies.summaries import AgentPointer
from plato.replay.shares import Shares, largest_shares
from plato.seeding import seed_key

MOST_CHOICES = 128
"""Choices of an agent that are kept at each step, with their probabilities."""
MOST_TEAMMATES = 8
"""Teammates that are kept likewise, where a team is larger than `WHOLE_TEAM`."""
WHOLE_TEAM = 16


class Sight(eqx.Module):
    """What is shown of one moment; of many, stacked."""

    state: Any
    exists: Bool[Any, "*time task"]
    present: Bool[Any, "*time agent"]
    tally: Tally
    """Of the steps before this moment."""


class Decision(eqx.Module):
    """What all agents decide in one step; of many, stacked."""

    actions: Int[Any, "*time agent"]
    choices: Shares | None
    """How likely the policy takes each action, if it says so."""
    attention: Shares | None
    """How much of each teammate enters an agent's query (the mean over heads)."""


@dataclass(frozen=True)
class Recording:
    """An episode of one policy, as NumPy arrays."""

    policy: str
    sights: Sight
    """Before the first step, and after each."""
    decisions: Decision
    """In each step."""

    @property
    def steps(self) -> int:
        return len(self.decisions.actions)

    @property
    def metrics(self) -> EpisodeMetrics:
        """Every metric as it grows, from before the first step to the end."""
        return episode_metrics(self.sights.tally)


def record(
    policy: Policy[Any],
    setup: Setup,
    *,
    name: str,
    seed: int = 200,
    noise: NoiseProtocol = "independent",
) -> Recording:
    """The episode that `evaluate` plays with this seed."""
    game = noisy_game(setup, noise)
    return record_game(player_at(policy, setup, seed, noise), game, name, seed)


def record_game(
    policy: Policy[Any], game: Game[Any, Any], name: str, seed: int
) -> Recording:
    """The episode of a seed in any game."""
    played = _record(game, policy, seed_key(seed), int(game.horizon))
    sights, decisions = jax.tree.map(np.asarray, played)
    steps = int(sights.tally.steps[-1])
    # The end of an episode is repeated up to the horizon.
    return Recording(
        name,
        jax.tree.map(lambda rows: rows[: steps + 1], sights),
        jax.tree.map(lambda rows: rows[:steps], decisions),
    )


@partial(jax.jit, static_argnames="horizon")
def _record(
    game: Game[Any, Any], policy: Policy[Any], key: PRNGKeyArray, horizon: int
) -> tuple[Sight, Decision]:
    first, keys = begin(game, policy, key)
    one_step = partial(_record_step, game, policy, keys)
    last, (sights, decisions) = jax.lax.scan(one_step, first, jnp.arange(horizon))
    end = jax.tree.map(lambda leaf: leaf[None], _sight(last))
    sights = jax.tree.map(lambda *rows: jnp.concatenate(rows), sights, end)
    return sights, decisions


def _record_step(
    game: Game[Any, Any],
    policy: Policy[Any],
    keys: EpisodeKeys,
    moment: Moment,
    time: Int[Array, ""],
) -> tuple[Moment, tuple[Sight, Decision]]:
    following, actions = advance(game, policy, keys, moment, time)
    seen, memory = moment.observation, moment.memory
    decision = Decision(actions, _choices(policy, seen, memory), _team(policy, seen))
    return following, (_sight(moment), decision)


def _sight(moment: Moment) -> Sight:
    state, seen = moment.state, moment.observation
    inner = state.inner if isinstance(state, ReplayedState) else state
    return Sight(inner, seen.exists, seen.present, moment.tally)


def _choices(policy: Policy[Any], seen: Observation, memory: Any) -> Shares | None:
    """The policy's own probabilities; agents that are away have nothing to choose."""
    if not isinstance(policy, PointerActor | DicgActor):
        return None
    log_policy, _ = policy.log_policy(seen, memory)
    offered = seen.action_mask & seen.present[:, None]
    return largest_shares(jnp.exp(log_policy), offered, MOST_CHOICES)


def _team(policy: Policy[Any], seen: Observation) -> Shares | None:
    if not isinstance(policy, PointerActor):
        return None
    if not isinstance(policy.team, AgentPointer):
        return None
    weights = policy.team.weights(seen).mean(axis=2)
    team = policy.team.members(seen) & seen.present[:, None]
    agents = weights.shape[0]
    return largest_shares(
        weights, team, agents if agents <= WHOLE_TEAM else MOST_TEAMMATES
    )
