"""Generalised advantage estimation, with time limits told apart from ends."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from plato.game import Observation
from plato.learners.rollout import Experience, Stage


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


def next_values(
    critic: Callable[[Observation], Float[Array, " game"]],
    value: Float[Array, "time game"],
    stage: Stage,
    experience: Experience,
) -> Float[Array, "time game"]:
    """The value of the state that each step led to, before any reset.

    It is that of the next moment, except where a time limit cut the episode: only
    these moments are given to the critic once more, in each game one after the other.
    """
    following = jnp.concatenate([value[1:], critic(stage.observation)[None]])
    cut = experience.done & ~experience.terminated
    games = jnp.arange(value.shape[1])

    def mend(carry):
        following, cut = carry
        time = jnp.argmax(cut, axis=0)
        last = jax.tree.map(
            lambda leaf: leaf[time, games], experience.final_observation
        )
        mended = jnp.where(cut.any(axis=0), critic(last), following[time, games])
        following = following.at[time, games].set(mended)
        return following, cut.at[time, games].set(False)

    return jax.lax.while_loop(lambda carry: carry[1].any(), mend, (following, cut))[0]
