"""The pointer actor: a query from the team that is present, a key for each task.

Algorithm 1 of the paper, lines 8 to 15. `summaries` holds what a query is made from,
`encoders` the two encoders of the paper's ablation, `scores` its two scorers.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from plato.game import Features, Observation
from plato.masking import chosen, masked_log_softmax, sample
from plato.policies.config import ActorConfig
from plato.policies.encoders import MLP, LSTMCell
from plato.policies.policy import Policy
from plato.policies.scores import AdditiveScorer, DotScorer, scorer
from plato.policies.summaries import (
    AgentPointer,
    TaskPointer,
    TaskStatistics,
    TeamStatistics,
    task_size,
    task_summary,
    team_size,
    team_summary,
)


class Memory(NamedTuple):
    """What an LSTM actor carries along, for each agent."""

    hidden: Float[Array, "agent hidden"]
    cell: Float[Array, "agent hidden"]
    present: Bool[Array, " agent"]
    """Who was there when it last looked: one who comes back begins anew."""

    def __repr__(self) -> str:
        # What is read of a printed decision is not in these numbers.
        return f"Memory(hidden={getattr(self.hidden, 'shape', self.hidden)})"


class PointerActor(Policy[Memory | None]):
    """Points at one of the task-actions an agent is offered, or at NOOP."""

    team: TeamStatistics | AgentPointer
    context: TaskStatistics | TaskPointer | None
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
        hidden, depth = config.hidden, config.depth
        task_row = features.task + (features.actions if features.actions > 1 else 0)
        summary = team_size(config, features) + task_size(config, features)
        summary += features.agent if config.ego else 0
        return cls(
            team=team_summary(config, features, key=k_team),
            context=task_summary(config, features, key=k_context),
            encode_query=(
                LSTMCell.create(summary, hidden, key=k_query)
                if config.encoder == "lstm"
                else MLP.create(summary, hidden, depth, key=k_query)
            ),
            encode_task=MLP.create(task_row, hidden, depth, key=k_task),
            noop=jax.random.normal(k_noop, (task_row,)),
            score=scorer(config, key=k_score),
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
