"""Several beginnings of one training, and the choice of the one that goes on.

Which convention a team settles on is decided early, by its first weights more than by
any rate: most lead to good teams, few to the best. On small grids the returns tell them
apart within the first fifth of a training; on 4×4 when nearly half of it is done.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

MEMORY = 0.9
"""How much of a score is kept with each update: about the last ten count."""


class Contender(NamedTuple):
    """One beginning of each run, stacked over runs."""

    learner: Any
    number: Int[Array, " run"]
    """Which of its run's beginnings it is."""
    score: Float[Array, " run"]
    """Its latest returns; minus infinity before there are any.

    Across several setups it is their mean, in which large returns weigh most.
    """

    @classmethod
    def create(cls, learner: Any, number: int, runs: int) -> "Contender":
        # In NumPy, which compiles nothing.
        numbers = np.full(runs, number, np.int32)
        scores = np.full(runs, -np.inf, np.float32)
        return cls(learner, jax.device_put(numbers), jax.device_put(scores))

    def after(self, learner: Any, metrics: Mapping[str, Array]) -> "Contender":
        """The same after an update."""
        news = metrics["return"]
        # Not in a program with the rest, which would round it but once.
        mixed = MEMORY * self.score + (1 - MEMORY) * news
        score = _scored(self.score, mixed, news, metrics["episodes"])
        return Contender(learner, self.number, score)


@jax.jit
def _scored(
    score: Float[Array, " run"],
    mixed: Float[Array, " run"],
    news: Float[Array, " run"],
    episodes: Int[Array, " run"],
) -> Float[Array, " run"]:
    later = jnp.where(jnp.isfinite(score), mixed, news)
    return jnp.where((episodes > 0) & jnp.isfinite(news), later, score)


def key_of(key: PRNGKeyArray, number: Int[Array, ""]) -> PRNGKeyArray:
    """The randomness of a beginning; that of the first is what it would be alone."""
    return jax.lax.select(number == 0, key, jax.random.fold_in(key, number))


@jax.jit
def best(scores: Sequence[Float[Array, " run"]], of: Sequence[Any]) -> Any:
    """What the contender with the highest score has, for each run."""
    which = jnp.argmax(jnp.stack(scores), axis=0)
    runs = jnp.arange(which.size)
    return jax.tree.map(lambda *leaves: jnp.stack(leaves)[which, runs], *of)
