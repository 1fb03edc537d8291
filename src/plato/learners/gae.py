"""Generalised advantage estimation, with time limits told apart from ends."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


def advantages(
    reward: Float[Array, "time *game"],
    value: Float[Array, "time *game"],
    next_value: Float[Array, "time *game"],
    terminated: Bool[Array, "time *game"],
    done: Bool[Array, "time *game"],
    gamma: Float[Array, ""] | float,
    lam: Float[Array, ""] | float,
) -> Float[Array, "time *game"]:
    """Advantages of each step.

    `next_value` is the value of the state that a step led to, before any reset. An
    episode cut short by its time limit is `done` and not `terminated`: its last step
    counts on that value, and nothing flows over from the episode that follows.
    """
    surprise = reward + gamma * jnp.where(terminated, 0.0, next_value) - value

    def backwards(later, step):
        delta, ends = step
        advantage = delta + gamma * lam * jnp.where(ends, 0.0, later)
        return advantage, advantage

    _, result = jax.lax.scan(
        backwards, jnp.zeros_like(value[0]), (surprise, done), reverse=True
    )
    return result
