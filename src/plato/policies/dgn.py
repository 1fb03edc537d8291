"""DGN: graph convolutional reinforcement learning (Jiang et al., ICLR 2020).

Q-values of every agent's actions from its own view and from what its neighbours tell:
each relation layer is multi-head attention over a neighbourhood that is given, not
learned. The head reads the encoding and the output of every layer side by side.

The neighbourhood is the agent itself and its nearest others, of those on the roster
that it sees: rows beyond the roster are masked and count for nothing. Agents that are
away stay neighbours. Views are padded, see `padded`, and honour what is private; what
neighbours tell may come from their own private features, as it is they who tell.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from plato.errors import PlatoError
from plato.game import Observation
from plato.masking import masked_softmax
from plato.policies.baseline_configs import DgnConfig
from plato.policies.encoders import MLP, Linear
from plato.policies.padded import PaddedShape, padded_view
from plato.policies.policy import Policy

INITIAL_STD = 0.05
"""Of all weights; biases begin at 0."""


class RelationLayer(eqx.Module):
    """One convolution: what an agent takes from its neighbourhood, by several heads."""

    query: Linear
    key: Linear
    value: Linear
    out: Linear
    heads: int = eqx.field(static=True)

    @classmethod
    def create(cls, config: DgnConfig, *, key: PRNGKeyArray) -> "RelationLayer":
        k_query, k_key, k_value, k_out = jax.random.split(key, 4)
        hidden, inner = config.hidden, config.heads * config.head_size
        return cls(
            query=_normal(hidden, inner, k_query),
            key=_normal(hidden, inner, k_key),
            value=_normal(hidden, inner, k_value),
            out=_normal(inner, hidden, k_out),
            heads=config.heads,
        )

    def __call__(
        self,
        features: Float[Array, "agent hidden"],
        neighbours: Bool[Array, "agent agent"],
    ) -> tuple[Float[Array, "agent hidden"], Float[Array, "head agent agent"]]:
        """The next features, and the relations: where each head of each agent looks."""
        query, key, value = (
            self._split(jax.nn.relu(layer(features)))
            for layer in (self.query, self.key, self.value)
        )
        scores = jnp.einsum("ihd,jhd->hij", query, key) / query.shape[2] ** 0.5
        near = jnp.broadcast_to(neighbours[None], scores.shape)
        relation = masked_softmax(scores, near)
        read = jnp.einsum("hij,jhd->ihd", relation, value)
        return jax.nn.relu(self.out(read.reshape(read.shape[0], -1))), relation

    def _split(self, x: Float[Array, "agent inner"]) -> Float[Array, "agent head size"]:
        return x.reshape(x.shape[0], self.heads, -1)


class QValues(eqx.Module):
    """What the network says of a moment."""

    values: Float[Array, "*game agent choice"]
    """Of the game's actions; the least float for those not offered, or cut off."""
    relations: Float[Array, "*game layer head agent agent"]
    """Attention in each layer; all 0 in rows that are not on the roster."""


class DgnActor(Policy[None]):
    """Takes the action of the highest Q-value; exploring is its learner's affair."""

    encode: MLP
    relations: list[RelationLayer]
    head: Linear
    shape: PaddedShape = eqx.field(static=True)
    position: tuple[int, ...] = eqx.field(static=True)
    neighbours: int = eqx.field(static=True)

    @classmethod
    def create(
        cls, config: DgnConfig, shape: PaddedShape, *, key: PRNGKeyArray
    ) -> "DgnActor":
        """A new network for N agents and `pad` tasks."""
        if max(config.position) >= shape.agent_features:
            raise PlatoError(
                f"dgn.position names columns {config.position}, but agents have "
                f"{shape.agent_features} features, numbered from 0."
            )
        hidden, depth = config.hidden, config.depth
        keys = jax.random.split(key, depth + config.layers + 1)
        sizes = [shape.width, *[hidden] * (depth - 1)]
        return cls(
            encode=MLP(
                [
                    _normal(s, hidden, k)
                    for s, k in zip(sizes, keys[:depth], strict=True)
                ]
            ),
            relations=[RelationLayer.create(config, key=k) for k in keys[depth:-1]],
            head=_normal((1 + config.layers) * hidden, shape.slots, keys[-1]),
            shape=shape,
            position=config.position,
            neighbours=config.neighbours,
        )

    def start(self, agents: int) -> None:
        del agents

    def known(self, observation: Observation) -> Bool[Array, "agent choice"]:
        """What is not cut off."""
        view = padded_view(self.shape, observation)
        return view.known(observation.action_mask.shape[1])

    def act(
        self, key: PRNGKeyArray, observation: Observation, memory: None
    ) -> tuple[Int[Array, " agent"], None]:
        del key, memory
        values = self.q_values(observation).values
        return jnp.argmax(values, axis=1).astype(jnp.int32), None

    def q_values(self, seen: Observation) -> QValues:
        """Q-values in the order of the game's actions, and the relations behind them.

        A maximum over all actions is one over those that can be chosen.
        """
        view = padded_view(self.shape, seen)
        values, relations = self(view.features, self.neighbourhood(seen))
        choices = seen.action_mask.shape[1]
        return QValues(view.in_game_order(values, choices), relations)

    def __call__(
        self,
        views: Float[Array, "agent width"],
        neighbours: Bool[Array, "agent agent"],
    ) -> tuple[Float[Array, "agent slot"], Float[Array, "layer head agent agent"]]:
        """A Q-value for each slot, closed ones too, and the relations of each layer."""
        features, relations = [self.encode(views)], []
        for layer in self.relations:
            following, relation = layer(features[-1], neighbours)
            features.append(following)
            relations.append(relation)
        return self.head(jnp.concatenate(features, axis=1)), jnp.stack(relations)

    def neighbourhood(self, seen: Observation) -> Bool[Array, "agent agent"]:
        """Who tells whom: row i marks the agents that agent i listens to."""
        positions = seen.agents[:, jnp.asarray(self.position)]
        both = seen.roster[:, None] & seen.roster[None, :]
        themselves = jnp.eye(positions.shape[0], dtype=bool)
        others = seen.sees_agents & both & ~themselves
        return nearest(positions, others, self.neighbours) | (themselves & both)


def nearest(
    positions: Float[Array, "agent axis"],
    candidates: Bool[Array, "agent agent"],
    count: int,
) -> Bool[Array, "agent agent"]:
    """The `count` nearest candidates of each agent, in Chebyshev distance.

    Of equally distant ones, those in the first rows.
    """
    agents = positions.shape[0]
    offsets = positions[:, None, :] - positions[None, :, :]
    distance = jnp.where(candidates, jnp.abs(offsets).max(axis=2), jnp.inf)
    _, rows = jax.lax.top_k(-distance, min(count, agents))
    among = (rows[:, :, None] == jnp.arange(agents)[None, None, :]).any(axis=1)
    return among & candidates


def divergence(
    relation: Float[Array, "head agent agent"], other: Float[Array, "head agent agent"]
) -> Float[Array, " agent"]:
    """KL(relation || other) for each agent, the mean over heads.

    The temporal regulariser compares the last layer's relations of one moment with
    those of the next; who is in no neighbourhood adds nothing.
    """
    there = relation > 0
    ratio = jnp.log(jnp.where(there, relation, 1.0)) - jnp.log(
        jnp.where(there, jnp.maximum(other, 1e-10), 1.0)
    )
    return jnp.sum(relation * ratio, axis=2).mean(axis=0)


def _normal(size: int, out: int, key: PRNGKeyArray) -> Linear:
    weight = INITIAL_STD * jax.random.normal(key, (size, out))
    return Linear(weight, jnp.zeros(out))
