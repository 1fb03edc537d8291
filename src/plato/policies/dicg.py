"""DICG: deep implicit coordination graphs (Li et al., AAMAS 2021).

Attention over the team makes a soft graph, along which two graph convolutions pass the
agents' embeddings. With centralised execution the graph is in the policy, and the
critic is a plain network over the joint observation; with decentralised execution the
policy sees one agent's view alone, and the graph is in the critic.

The graph has no size: it covers the agents of the roster, and rows beyond it are
masked, whereas agents that are away stay nodes of it. Views are padded, see `padded`.
A view honours what is private and what is out of sight; a message does not, since with
centralised execution every agent's view is at hand.
"""

from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from plato.game import Observation
from plato.masking import masked_log_softmax, masked_softmax, sample
from plato.policies.baseline_configs import DicgConfig
from plato.policies.encoders import Linear
from plato.policies.padded import PaddedShape, PaddedView, joint_view, padded_view
from plato.policies.policy import Policy

LEAST_STD = 1e-6
"""The graph critic's standard deviation does not fall below it."""
FLAT_LAYERS = 3
"""Hidden layers of the critic over the joint observation."""


class TanhMLP(eqx.Module):
    """Linear layers with a tanh between them; the last one is linear."""

    layers: list[Linear]

    @classmethod
    def create(cls, sizes: tuple[int, ...], *, key: PRNGKeyArray) -> "TanhMLP":
        """Layers between consecutive sizes, input and output included."""
        pairs = list(pairwise(sizes))
        keys = jax.random.split(key, len(pairs))
        return cls([_xavier(*pair, k) for pair, k in zip(pairs, keys, strict=True)])

    def __call__(self, x: Float[Array, "*row in"]) -> Float[Array, "*row out"]:
        *hidden, last = self.layers
        for layer in hidden:
            x = jnp.tanh(layer(x))
        return last(x)


class CoordinationGraph(eqx.Module):
    """Embeddings of the agents, after talk along the graph that their attention is."""

    encode: TanhMLP
    attention: Float[Array, "hidden hidden"]
    convolutions: list[Linear]
    frozen: bool = eqx.field(static=True)
    """Whether the convolutions are never trained."""

    @classmethod
    def create(
        cls, config: DicgConfig, size: int, *, key: PRNGKeyArray
    ) -> "CoordinationGraph":
        hidden = config.hidden
        k_encode, k_attention, *k_layers = jax.random.split(key, 2 + config.layers)
        return cls(
            encode=TanhMLP.create((size, hidden, hidden), key=k_encode),
            attention=_uniform(k_attention, (hidden, hidden)),
            convolutions=[_convolution(hidden, k) for k in k_layers],
            frozen=config.frozen_gcn,
        )

    def __call__(
        self, views: Float[Array, "agent width"], roster: Bool[Array, " agent"]
    ) -> Float[Array, "agent hidden"]:
        """H_0 + H_m, where H_{l+1} = tanh(M H_l W_l + b_l)."""
        first = jnp.tanh(self.encode(views))
        edges = self.edges(first, roster)
        nodes = first
        for layer in self.convolutions:
            # What is frozen still hands gradients on to the encoder and the attention.
            layer = jax.lax.stop_gradient(layer) if self.frozen else layer
            nodes = jnp.tanh(layer(edges @ nodes))
        return first + nodes

    def edges(
        self, embeddings: Float[Array, "agent hidden"], roster: Bool[Array, " agent"]
    ) -> Float[Array, "agent agent"]:
        """General attention, a softmax over j of e_i W e_j, oneself included.

        Rows sum to 1: the graph needs no normalisation by degrees.
        """
        scores = embeddings @ self.attention @ embeddings.T
        return masked_softmax(scores, jnp.broadcast_to(roster[None, :], scores.shape))


class DicgActor(Policy[None]):
    """Both policies: over embeddings from the graph, or over views without one."""

    graph: CoordinationGraph | None
    head: TanhMLP
    shape: PaddedShape = eqx.field(static=True)
    greedy: bool = eqx.field(static=True, default=False)
    """Whether `act` takes the likeliest action instead of drawing one."""

    @classmethod
    def create(
        cls, config: DicgConfig, shape: PaddedShape, *, key: PRNGKeyArray
    ) -> "DicgActor":
        """A new actor for N agents and `pad` tasks."""
        k_graph, k_head = jax.random.split(key)
        graph, size = None, shape.width
        if config.execution == "centralised":
            graph = CoordinationGraph.create(config, shape.width, key=k_graph)
            size = config.hidden
        head = TanhMLP.create((size, *config.policy, shape.slots), key=k_head)
        return cls(graph, head, shape)

    def start(self, agents: int) -> None:
        del agents

    def known(self, observation: Observation) -> Bool[Array, "agent choice"]:
        """What is not cut off."""
        view = padded_view(self.shape, observation)
        return view.known(observation.action_mask.shape[1])

    def act(
        self, key: PRNGKeyArray, observation: Observation, memory: None
    ) -> tuple[Int[Array, " agent"], None]:
        if self.greedy:
            log_policy, _ = self.log_policy(observation, memory)
            return jnp.argmax(log_policy, axis=1).astype(jnp.int32), None
        actions, _, _ = self.explore(key, observation, memory)
        return actions, None

    def explore(
        self, key: PRNGKeyArray, observation: Observation, memory: None
    ) -> tuple[Int[Array, " agent"], Float[Array, " agent"], None]:
        """Draws an action for each agent, and says with what log-probability."""
        log_policy, _ = self.log_policy(observation, memory)
        numbers = jax.random.uniform(key, (log_policy.shape[0],))
        actions = sample(jnp.exp(log_policy), numbers)
        chosen = jnp.take_along_axis(log_policy, actions[:, None], axis=1)[:, 0]
        return actions, chosen, None

    def log_policy(
        self, seen: Observation, memory: None
    ) -> tuple[Float[Array, "agent choice"], None]:
        """Log-probabilities of the game's actions, those that are cut off included.

        These, and what is not offered, have the least float there is.
        """
        del memory
        view = padded_view(self.shape, seen)
        logs = masked_log_softmax(self.logits(view, seen.roster), view.mask)
        return view.in_game_order(logs, seen.action_mask.shape[1]), None

    def logits(
        self, view: PaddedView, roster: Bool[Array, " agent"]
    ) -> Float[Array, "agent slot"]:
        """A score for each slot, closed ones too."""
        if self.graph is None:
            return self.head(view.features)
        return self.head(self.graph(view.features, roster))


class Gaussian(eqx.Module):
    """What a critic believes of the return."""

    mean: Float[Array, "*moment"]
    log_std: Float[Array, "*moment"]

    def log_density(self, value: Float[Array, "*moment"]) -> Float[Array, "*moment"]:
        offset = (value - self.mean) * jnp.exp(-self.log_std)
        return -0.5 * offset**2 - self.log_std - 0.5 * jnp.log(2 * jnp.pi)


class FlatCritic(eqx.Module):
    """The critic of centralised execution: an MLP over the joint observation."""

    value: TanhMLP
    log_std: Float[Array, ""]
    """One for all moments, learned."""
    shape: PaddedShape = eqx.field(static=True)

    @classmethod
    def create(
        cls, config: DicgConfig, shape: PaddedShape, *, key: PRNGKeyArray
    ) -> "FlatCritic":
        hidden = (config.critic_hidden,) * FLAT_LAYERS
        sizes = (shape.agents * shape.width, *hidden, 1)
        return cls(TanhMLP.create(sizes, key=key), jnp.zeros(()), shape)

    def __call__(self, seen: Observation) -> Gaussian:
        joint = joint_view(self.shape, seen, padded_view(self.shape, seen))
        return Gaussian(self.value(joint)[0], self.log_std)


class SummedCritic(eqx.Module):
    """The critic of decentralised execution: a share for each node, and their sum."""

    graph: CoordinationGraph
    share: TanhMLP
    log_std: Float[Array, ""]
    """One for all moments, learned."""
    shape: PaddedShape = eqx.field(static=True)

    @classmethod
    def create(
        cls, config: DicgConfig, shape: PaddedShape, *, key: PRNGKeyArray
    ) -> "SummedCritic":
        k_graph, k_share = jax.random.split(key)
        sizes = (config.hidden, config.critic_hidden, 1)
        return cls(
            graph=CoordinationGraph.create(config, shape.width, key=k_graph),
            share=TanhMLP.create(sizes, key=k_share),
            log_std=jnp.zeros(()),
            shape=shape,
        )

    def __call__(self, seen: Observation) -> Gaussian:
        view = padded_view(self.shape, seen)
        shares = self.share(self.graph(view.features, seen.roster))[:, 0]
        total = jnp.sum(jnp.where(seen.roster, shares, 0.0))
        return Gaussian(total, jnp.maximum(self.log_std, jnp.log(LEAST_STD)))


def dicg_critic(
    config: DicgConfig, shape: PaddedShape, *, key: PRNGKeyArray
) -> FlatCritic | SummedCritic:
    """The critic that goes with the way of execution."""
    if config.execution == "centralised":
        return FlatCritic.create(config, shape, key=key)
    return SummedCritic.create(config, shape, key=key)


def _xavier(size: int, out: int, key: PRNGKeyArray) -> Linear:
    weight = jax.nn.initializers.glorot_uniform()(key, (size, out), jnp.float32)
    return Linear(weight, jnp.zeros(out))


def _convolution(hidden: int, key: PRNGKeyArray) -> Linear:
    k_weight, k_bias = jax.random.split(key)
    bias = _uniform(k_bias, (hidden,))
    return Linear(_uniform(k_weight, (hidden, hidden)), bias)


def _uniform(key: PRNGKeyArray, shape: tuple[int, ...]) -> Array:
    """Within 1 / sqrt(hidden) of 0."""
    bound = shape[0] ** -0.5
    return jax.random.uniform(key, shape, minval=-bound, maxval=bound)
