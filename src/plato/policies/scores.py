"""Scores: how much a query makes of a key (Algorithm 1, line 13).

Additive ones as in Algorithm 1, or the scaled dot products of the paper's ablation. The
pointers into team and tasks of `summaries` score additively, too.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from plato.policies.config import ActorConfig
from plato.policies.encoders import Linear

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


def first_value(shape: tuple[int, ...], *, key: PRNGKeyArray) -> Array:
    """A new v: scores close to each other at first begin near the uniform policy."""
    return 0.1 * jax.random.normal(key, shape) / shape[0] ** 0.5


class AdditiveScorer(eqx.Module):
    """u = v . tanh(W_K k + W_q q)."""

    key_map: Linear
    query_map: Linear
    value: Float[Array, " hidden"]

    @classmethod
    def create(cls, config: ActorConfig, *, key: PRNGKeyArray) -> "AdditiveScorer":
        k_key, k_query, k_value = jax.random.split(key, 3)
        hidden = config.hidden
        return cls(
            key_map=Linear.create(hidden, hidden, key=k_key, gain=1.0),
            query_map=Linear.create(hidden, hidden, key=k_query, gain=1.0),
            value=first_value((hidden,), key=k_value),
        )

    def __call__(
        self, query: Float[Array, "agent hidden"], keys: Float[Array, "choice hidden"]
    ) -> Float[Array, "agent choice"]:
        value = self.value[:, None]
        return additive_scores(self.query_map(query), self.key_map(keys), value)[..., 0]

    def at(self, temperature: float) -> "AdditiveScorer":
        """Scores over a temperature: below 1, a softmax of them is surer."""
        return AdditiveScorer(self.key_map, self.query_map, self.value / temperature)


class DotScorer(eqx.Module):
    """u = k . q / sqrt(d), without further parameters."""

    def __call__(
        self, query: Float[Array, "agent hidden"], keys: Float[Array, "choice hidden"]
    ) -> Float[Array, "agent choice"]:
        return query @ keys.T / query.shape[1] ** 0.5


def scorer(config: ActorConfig, *, key: PRNGKeyArray) -> AdditiveScorer | DotScorer:
    """The scorer that is asked for."""
    if config.scorer == "dot":
        return DotScorer()
    return AdditiveScorer.create(config, key=key)
