"""Summaries of sets: what an agent's query is made from (Algorithm 1, line 10).

Algorithm 1 sums up the team by statistics, the paper's agent-openness lemma by pointing
at agents. The tasks that an agent sees can join its query in both ways, too, which is
not in the paper. The size of a summary does not depend on how many it is of.
"""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from plato.game import Features, Observation
from plato.masking import masked_softmax, set_statistics
from plato.policies.config import ActorConfig
from plato.policies.encoders import MLP, Linear
from plato.policies.products import small_product
from plato.policies.scores import additive_scores, first_value


class Team(eqx.Module):
    """Who belongs to an agent's team, and what is known of them."""

    away: Literal["removed", "flagged"] = eqx.field(static=True)

    def counted(self, seen: Observation) -> Bool[Array, " agent"]:
        """Who is part of the team at this moment."""
        return seen.present if self.away == "removed" else seen.roster

    def members(self, seen: Observation) -> Bool[Array, "agent agent"]:
        """Whom of the team each agent sees."""
        return seen.sees_agents & self.counted(seen)[None, :]

    def rows(
        self, seen: Observation
    ) -> tuple[Float[Array, "agent size"], Float[Array, "agent size"]]:
        """What agents know of themselves, and what the others may know of them."""
        own, public = seen.agents, seen.agents * seen.public[None, :]
        if self.away == "removed":
            return own, public
        flag = seen.present[:, None].astype(own.dtype)
        own = jnp.concatenate([own, flag], axis=1)
        return own, jnp.concatenate([public, flag], axis=1)

    @staticmethod
    def features(config: ActorConfig, features: Features) -> int:
        """The size of such a row."""
        return features.agent + (config.away == "flagged")


class TeamStatistics(Team):
    """Algorithm 1, line 10: statistics over the agents of the team."""

    def __call__(self, seen: Observation) -> Float[Array, "agent size"]:
        own, public = self.rows(seen)
        themselves = jnp.eye(own.shape[0], dtype=bool)[:, :, None]
        views = jnp.where(themselves, own[None, :, :], public[None, :, :])
        return jax.vmap(set_statistics)(views, self.members(seen))


class AgentPointer(Team):
    """The agent-openness lemma: attention over agents, one's own key as the query."""

    encode: MLP
    key_map: Linear
    query_map: Linear
    value: Float[Array, "hidden head"]

    @classmethod
    def create(
        cls, config: ActorConfig, features: Features, *, key: PRNGKeyArray
    ) -> "AgentPointer":
        k_encode, k_key, k_query, k_value = jax.random.split(key, 4)
        size, hidden = Team.features(config, features), config.hidden
        return cls(
            away=config.away,
            encode=MLP.create(size, hidden, config.depth, key=k_encode),
            key_map=Linear.create(hidden, hidden, key=k_key, gain=1.0),
            query_map=Linear.create(hidden, hidden, key=k_query, gain=1.0),
            value=first_value((hidden, config.heads), key=k_value),
        )

    def weights(self, seen: Observation) -> Float[Array, "agent agent head"]:
        """Where each agent points in its team."""
        weights, _, _ = self._point(seen)
        return weights

    def __call__(self, seen: Observation) -> Float[Array, "agent size"]:
        weights, own, public = self._point(seen)
        read = _read(weights.swapaxes(1, 2), public)
        # One's own row is read with all of its features, not the public ones alone.
        mine = jnp.diagonal(weights).T.astype(own.dtype)
        read += mine[:, :, None] * (own - public)[:, None, :]
        return read.reshape(read.shape[0], -1)

    def _point(self, seen: Observation):
        own, public = map(self.encode, self.rows(seen))
        query = self.query_map(own)
        scores = additive_scores(query, self.key_map(public), self.value)
        to_self = (jnp.tanh(self.key_map(own) + query) @ self.value).astype(jnp.float32)
        themselves = jnp.eye(own.shape[0], dtype=bool)[:, :, None]
        scores = jnp.where(themselves, to_self[:, None, :], scores)
        team = jnp.broadcast_to(
            self.members(seen)[:, None, :], jnp.shape(scores.swapaxes(1, 2))
        )
        weights = masked_softmax(scores.swapaxes(1, 2), team).swapaxes(1, 2)
        return weights, own, public


class TaskStatistics(eqx.Module):
    """Statistics over the tasks that exist and are seen."""

    def __call__(
        self, seen: Observation, keys: Float[Array, "choice hidden"]
    ) -> Float[Array, "agent size"]:
        del keys
        over = jax.vmap(set_statistics, in_axes=(None, 0))
        return over(seen.tasks, _view(seen))


class TaskPointer(eqx.Module):
    """Attention over the keys of the tasks that exist and are seen."""

    key_map: Linear
    query_map: Linear
    value: Float[Array, "hidden head"]
    actions: int = eqx.field(static=True)

    @classmethod
    def create(
        cls, config: ActorConfig, features: Features, *, key: PRNGKeyArray
    ) -> "TaskPointer":
        k_key, k_query, k_value = jax.random.split(key, 3)
        hidden = config.hidden
        return cls(
            key_map=Linear.create(hidden, hidden, key=k_key, gain=1.0),
            query_map=Linear.create(features.agent, hidden, key=k_query, gain=1.0),
            value=first_value((hidden, config.heads), key=k_value),
            actions=features.actions,
        )

    def __call__(
        self, seen: Observation, keys: Float[Array, "choice hidden"]
    ) -> Float[Array, "agent size"]:
        query, tasks = self.query_map(seen.agents), keys[1:]
        scores = additive_scores(query, self.key_map(tasks), self.value).swapaxes(1, 2)
        view = jnp.repeat(_view(seen), self.actions, axis=1)
        view = jnp.broadcast_to(view[:, None, :], scores.shape)
        read = _read(masked_softmax(scores, view), tasks)
        return read.reshape(read.shape[0], -1)


def team_summary(
    config: ActorConfig, features: Features, *, key: PRNGKeyArray
) -> TeamStatistics | AgentPointer:
    """What sums up the team for the query."""
    if config.query == "statistics":
        return TeamStatistics(config.away)
    return AgentPointer.create(config, features, key=key)


def team_size(config: ActorConfig, features: Features) -> int:
    """How many numbers that is for each agent."""
    if config.query == "statistics":
        return 4 * Team.features(config, features)
    return config.hidden * config.heads


def task_summary(
    config: ActorConfig, features: Features, *, key: PRNGKeyArray
) -> TaskStatistics | TaskPointer | None:
    """What sums up the tasks for the query, if anything does."""
    if config.context == "none":
        return None
    if config.context == "statistics":
        return TaskStatistics()
    return TaskPointer.create(config, features, key=key)


def task_size(config: ActorConfig, features: Features) -> int:
    """How many numbers that is for each agent."""
    if config.context == "none":
        return 0
    if config.context == "statistics":
        return 4 * features.task
    return config.hidden * config.heads


def _read(
    weights: Float[Array, "agent head row"], rows: Float[Array, "row hidden"]
) -> Float[Array, "agent head hidden"]:
    """What each agent's heads find where they point."""
    weights = weights.astype(rows.dtype)
    read = small_product(weights.reshape(-1, rows.shape[0]), rows)
    return read.reshape(*weights.shape[:2], -1)


def _view(seen: Observation) -> Bool[Array, "agent task"]:
    """Which tasks each agent sees: those that exist and are visible to it."""
    return seen.sees_tasks & seen.exists[None, :]
