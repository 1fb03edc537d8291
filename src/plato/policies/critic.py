"""The GCN critic: the value of a moment, from the graph of agents and tasks.

Used in training only. Its nodes are the agents of the team and the tasks that exist,
with an edge wherever an agent has an action on a task.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from plato.game import Features, Observation
from plato.policies.config import ActorConfig
from plato.policies.encoders import MLP, Linear
from plato.policies.products import small_product
from plato.policies.summaries import Team

LAYERS = 2


class GraphCritic(eqx.Module):
    """Algorithm 1, lines 16 to 22."""

    team: Team
    encode_agent: MLP
    encode_task: MLP
    convolutions: list[Linear]
    head: MLP
    value: Linear

    @classmethod
    def create(
        cls, config: ActorConfig, features: Features, *, key: PRNGKeyArray
    ) -> "GraphCritic":
        """A new critic, of the width, depth and view of the team that the actor has."""
        hidden, depth = config.hidden, config.depth
        k_agent, k_task, k_head, k_value, *k_layers = jax.random.split(key, 4 + LAYERS)
        agent_size = Team.features(config, features)
        return cls(
            team=Team(config.away),
            encode_agent=MLP.create(agent_size, hidden, depth, key=k_agent),
            encode_task=MLP.create(features.task, hidden, depth, key=k_task),
            convolutions=[Linear.create(hidden, hidden, key=k) for k in k_layers],
            head=MLP.create(hidden, hidden, 1, key=k_head),
            value=Linear.create(hidden, 1, key=k_value, gain=1.0),
        )

    def __call__(self, seen: Observation) -> Float[Array, ""]:
        """The value of the moment, for the team."""
        there, exists = self.team.counted(seen)[:, None], seen.exists[:, None]
        known, _ = self.team.rows(seen)
        agents = jnp.where(there, self.encode_agent(known), 0.0)
        rows = jnp.where(exists, seen.tasks, 0.0)
        tasks = jnp.where(exists, self.encode_task(rows), 0.0)
        linked = seen.options.any(axis=2)
        edges = linked.astype(agents.dtype)
        agent_scale, task_scale = _scale(linked, 1, edges), _scale(linked, 0, edges)
        first_agents, first_tasks = agents, tasks
        for layer in self.convolutions:
            to_agents, to_tasks = agents * agent_scale, tasks * task_scale
            agents = agent_scale * (to_agents + small_product(edges, to_tasks))
            tasks = task_scale * (to_tasks + small_product(edges.T, to_agents))
            agents = jnp.where(there, jax.nn.relu(layer(agents)), 0.0)
            tasks = jnp.where(exists, jax.nn.relu(layer(tasks)), 0.0)
        total = (agents + first_agents).sum(axis=0) + (tasks + first_tasks).sum(axis=0)
        nodes = jnp.sum(there) + jnp.sum(exists)
        mean = total / jnp.maximum(nodes, 1).astype(total.dtype)
        return self.value(self.head(mean))[0].astype(jnp.float32)


def _scale(
    linked: Bool[Array, "agent task"], axis: int, like: Float[Array, "agent task"]
) -> Float[Array, "node 1"]:
    """Kipf's normalisation; it counts every node as a neighbour of itself."""
    degree = 1 + jnp.sum(linked, axis=axis)
    return jax.lax.rsqrt(degree.astype(jnp.float32)).astype(like.dtype)[:, None]
