"""The pointer actor: a query from the team that is present, a key for each task.

Algorithm 1 of the paper builds the query from statistics of the team; the actor of its
agent-openness lemma by pointing at the agents. Both are here, behind one interface, as
are the two encoders and the two scorers of its ablation.
"""

from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from plato.game import Observation
from plato.masking import (
    chosen,
    masked_log_softmax,
    masked_softmax,
    sample,
    set_statistics,
)
from plato.policies.config import ActorConfig
from plato.policies.encoders import MLP, Linear, LSTMCell
from plato.policies.policy import Policy
from plato.policies.products import small_product


class Features(NamedTuple):
    """How many features a domain gives an agent and a task, and actions per task."""

    agent: int
    task: int
    actions: int


class Memory(NamedTuple):
    """What an LSTM actor carries along, for each agent."""

    hidden: Float[Array, "agent hidden"]
    cell: Float[Array, "agent hidden"]
    present: Bool[Array, " agent"]
    """Who was there when it last looked: one who comes back begins anew."""


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


LARGEST_MIX = 2**20
"""Numbers that pairs of queries and keys may take at once: about what a cache holds."""


def additive_scores(
    query: Float[Array, "agent hidden"],
    keys: Float[Array, "row hidden"],
    value: Float[Array, "hidden head"],
) -> Float[Array, "agent row head"]:
    """v . tanh(q + k) for all pairs; a few agents at a time where all take too much."""

    def of_agent(query: Float[Array, " hidden"]) -> Float[Array, "row head"]:
        return jnp.tanh(query[None, :] + keys) @ value

    if query.shape[0] * keys.size <= LARGEST_MIX:
        return _mix(query, keys, value)
    return jax.lax.map(of_agent, query, batch_size=max(LARGEST_MIX // keys.size, 1))


@jax.checkpoint
def _mix(
    query: Float[Array, "agent hidden"],
    keys: Float[Array, "row hidden"],
    value: Float[Array, "hidden head"],
) -> Float[Array, "agent row head"]:
    """All pairs at once: the largest array of an actor, formed anew for a gradient."""
    mixed = jnp.tanh(query[:, None, None, :] + keys[None, :, None, :])
    return jnp.sum(mixed * value.T[None, None], axis=-1, dtype=jnp.float32)


def _read(
    weights: Float[Array, "agent head row"], rows: Float[Array, "row hidden"]
) -> Float[Array, "agent head hidden"]:
    """What each agent's heads find where they point."""
    weights = weights.astype(rows.dtype)
    read = small_product(weights.reshape(-1, rows.shape[0]), rows)
    return read.reshape(*weights.shape[:2], -1)


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

    def __call__(
        self, seen: Observation, keys: Float[Array, "choice hidden"]
    ) -> Float[Array, "agent size"]:
        query, tasks = self.query_map(seen.agents), keys[1:]
        scores = additive_scores(query, self.key_map(tasks), self.value).swapaxes(1, 2)
        view = jnp.repeat(_view(seen), self.actions, axis=1)
        view = jnp.broadcast_to(view[:, None, :], scores.shape)
        read = _read(masked_softmax(scores, view), tasks)
        return read.reshape(read.shape[0], -1)


class AdditiveScorer(eqx.Module):
    """u = v . tanh(W_K k + W_q q)."""

    key_map: Linear
    query_map: Linear
    value: Float[Array, " hidden"]

    def __call__(
        self, query: Float[Array, "agent hidden"], keys: Float[Array, "choice hidden"]
    ) -> Float[Array, "agent choice"]:
        value = self.value[:, None]
        return additive_scores(self.query_map(query), self.key_map(keys), value)[..., 0]


class DotScorer(eqx.Module):
    """u = k . q / sqrt(d), without further parameters."""

    def __call__(
        self, query: Float[Array, "agent hidden"], keys: Float[Array, "choice hidden"]
    ) -> Float[Array, "agent choice"]:
        return query @ keys.T / query.shape[1] ** 0.5


class PointerActor(Policy[Memory | None]):
    """Points at one of the task-actions an agent is offered, or at NOOP."""

    team: TeamStatistics | AgentPointer
    context: "TaskStatistics | TaskPointer | None"
    encode_query: MLP | LSTMCell
    encode_task: MLP
    noop: Float[Array, " task_feat"]
    """The features of NOOP, learned."""
    score: AdditiveScorer | DotScorer
    ego: bool = eqx.field(static=True)
    agent_features: int = eqx.field(static=True)
    """How many features an agent has."""
    actions: int = eqx.field(static=True)
    """How many actions a task offers."""
    greedy: bool = eqx.field(static=True, default=False)
    """Whether `act` takes the likeliest action instead of drawing one."""

    @classmethod
    def create(
        cls, config: ActorConfig, features: Features, *, key: PRNGKeyArray
    ) -> "PointerActor":
        """A new actor; the number of agents and tasks is not among its arguments."""
        k_team, k_context, k_query, k_task, k_score, k_noop = jax.random.split(key, 6)
        hidden = config.hidden
        task_size = features.task + (features.actions if features.actions > 1 else 0)
        summary = (
            hidden * config.heads
            if config.query == "pointer"
            else 4 * Team.features(config, features)
        )
        summary += features.agent if config.ego else 0
        summary += {
            "none": 0,
            "statistics": 4 * features.task,
            "pointer": hidden * config.heads,
        }[config.context]
        return cls(
            team=_team_module(config, features, k_team),
            context=_context_module(config, features, k_context),
            encode_query=(
                LSTMCell.create(summary, hidden, key=k_query)
                if config.encoder == "lstm"
                else MLP.create(summary, hidden, config.depth, key=k_query)
            ),
            encode_task=MLP.create(task_size, hidden, config.depth, key=k_task),
            noop=jax.random.normal(k_noop, (task_size,)),
            score=_scorer(config, k_score),
            ego=config.ego,
            agent_features=features.agent,
            actions=features.actions,
        )

    def start(self, agents: int) -> Memory | None:
        if isinstance(self.encode_query, MLP):
            return None
        blank = jnp.zeros((agents, self.encode_query.hidden))
        return Memory(blank, blank, jnp.zeros(agents, bool))

    def act(
        self, key: PRNGKeyArray, observation: Observation, memory: Memory | None
    ) -> tuple[Int[Array, " agent"], Memory | None]:
        if self.greedy:
            log_policy, memory = self.log_policy(observation, memory)
            return jnp.argmax(log_policy, axis=1).astype(jnp.int32), memory
        actions, _, memory = self.explore(key, observation, memory)
        return actions, memory

    def explore(
        self, key: PRNGKeyArray, observation: Observation, memory: Memory | None
    ) -> tuple[Int[Array, " agent"], Float[Array, " agent"], Memory | None]:
        """Draws an action for each agent, and says with what log-probability."""
        log_policy, memory = self.log_policy(observation, memory)
        numbers = jax.random.uniform(key, (log_policy.shape[0],))
        actions = sample(jnp.exp(log_policy), numbers)
        return actions, chosen(log_policy, actions), memory

    def log_policy(
        self, seen: Observation, memory: Memory | None
    ) -> tuple[Float[Array, "agent choice"], Memory | None]:
        """Log-probabilities of NOOP and every task-action: a softmax over the offered.

        What is not offered has the least float there is, which `exp` takes to 0.
        """
        keys = self.keys(seen)
        summary = self.summary(seen, keys)
        if isinstance(self.encode_query, MLP):
            query = self.encode_query(summary)
        else:
            assert memory is not None
            query, cell = self.encode_query.step(
                self.encode_query.entering(summary),
                (memory.hidden, memory.cell),
                memory.present,
            )
            memory = Memory(query, cell, seen.present)
        return self.choices(query, keys, seen), memory

    def log_policies(
        self, seen: Observation, started: Bool[Array, " time"], memory: Memory | None
    ) -> Float[Array, "time agent choice"]:
        """The same at all moments of a sequence, which begins with a memory.

        Where an episode `started`, memories begin anew. Nothing but them goes from one
        moment to the next; all else is done for all moments at once.
        """
        keys = jax.vmap(self.keys)(seen)
        summary = jax.vmap(self.summary)(seen, keys)
        if isinstance(self.encode_query, MLP):
            query = self.encode_query(summary)
        else:
            assert memory is not None
            query = self._remembered(self.encode_query, summary, seen, started, memory)
        return jax.vmap(self.choices)(query, keys, seen)

    def _remembered(
        self,
        cell: LSTMCell,
        summary: Float[Array, "time agent size"],
        seen: Observation,
        started: Bool[Array, " time"],
        memory: Memory,
    ) -> Float[Array, "time agent hidden"]:
        """The queries along a sequence: the one thing that is done step by step."""
        before = jnp.concatenate([memory.present[None], seen.present[:-1]])
        kept = before & ~started[:, None]

        def step(remembered, moment):
            entering, kept = moment
            remembered = cell.step(entering, remembered, kept)
            return remembered, remembered[0]

        first = (memory.hidden, memory.cell)
        _, query = jax.lax.scan(step, first, (cell.entering(summary), kept))
        return query

    def choices(
        self,
        query: Float[Array, "agent hidden"],
        keys: Float[Array, "choice hidden"],
        seen: Observation,
    ) -> Float[Array, "agent choice"]:
        """Algorithm 1, lines 13 and 14: log-probabilities from queries and keys."""
        scores = self.score(query, keys).astype(jnp.float32)
        return masked_log_softmax(scores, seen.action_mask)

    def summary(
        self, seen: Observation, keys: Float[Array, "choice hidden"]
    ) -> Float[Array, "agent size"]:
        """Algorithm 1, line 10: what the query of each agent is made from."""
        parts = [self.team(seen)]
        if self.ego:
            parts.append(seen.agents)
        if self.context is not None:
            parts.append(self.context(seen, keys))
        return jnp.concatenate(parts, axis=1)

    def keys(self, seen: Observation) -> Float[Array, "choice hidden"]:
        """Algorithm 1, line 12: a key for NOOP and for each task-action."""
        rows = jnp.where(seen.exists[:, None], seen.tasks, 0.0)
        if self.actions > 1:
            which = jnp.tile(jnp.eye(self.actions), (rows.shape[0], 1))
            each = jnp.repeat(rows, self.actions, axis=0)
            rows = jnp.concatenate([each, which], axis=1)
        return self.encode_task(jnp.concatenate([self.noop[None, :], rows]))


def _view(seen: Observation) -> Bool[Array, "agent task"]:
    """Which tasks each agent sees: those that exist and are visible to it."""
    return seen.sees_tasks & seen.exists[None, :]


def _context_module(
    config: ActorConfig, features: Features, key: PRNGKeyArray
) -> TaskStatistics | TaskPointer | None:
    if config.context == "none":
        return None
    if config.context == "statistics":
        return TaskStatistics()
    k_key, k_query, k_value = jax.random.split(key, 3)
    hidden = config.hidden
    return TaskPointer(
        key_map=Linear.create(hidden, hidden, key=k_key, gain=1.0),
        query_map=Linear.create(features.agent, hidden, key=k_query, gain=1.0),
        value=_small(k_value, (hidden, config.heads)),
        actions=features.actions,
    )


def _team_module(
    config: ActorConfig, features: Features, key: PRNGKeyArray
) -> TeamStatistics | AgentPointer:
    if config.query == "statistics":
        return TeamStatistics(config.away)
    k_encode, k_key, k_query, k_value = jax.random.split(key, 4)
    hidden = config.hidden
    return AgentPointer(
        away=config.away,
        encode=MLP.create(
            Team.features(config, features), hidden, config.depth, key=k_encode
        ),
        key_map=Linear.create(hidden, hidden, key=k_key, gain=1.0),
        query_map=Linear.create(hidden, hidden, key=k_query, gain=1.0),
        value=_small(k_value, (hidden, config.heads)),
    )


def _scorer(config: ActorConfig, key: PRNGKeyArray) -> AdditiveScorer | DotScorer:
    if config.scorer == "dot":
        return DotScorer()
    k_key, k_query, k_value = jax.random.split(key, 3)
    return AdditiveScorer(
        key_map=Linear.create(config.hidden, config.hidden, key=k_key, gain=1.0),
        query_map=Linear.create(config.hidden, config.hidden, key=k_query, gain=1.0),
        value=_small(k_value, (config.hidden,)),
    )


def _small(key: PRNGKeyArray, shape: tuple[int, ...]) -> Array:
    """Scores close to each other at first: begin near the uniform policy."""
    return 0.1 * jax.random.normal(key, shape) / shape[0] ** 0.5
