"""What finished episodes returned, in all and on each setup."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def returned(
    ended: Int[Array, " game"], total: Float[Array, " game"], setups: int
) -> dict[str, Array]:
    """Episodes that ended in each game and the sum of their returns, as metrics.

    Games come in equal blocks, one for each setup. Every setup counts alike, however
    short its episodes are.
    """
    episodes = ended.reshape(setups, -1).sum(axis=1)
    means = total.reshape(setups, -1).sum(axis=1) / jnp.maximum(episodes, 1)
    played = jnp.sum(episodes > 0)
    overall = {
        "episodes": episodes.sum(),
        "return": means.sum() / jnp.maximum(played, 1),
    }
    if setups == 1:
        return overall
    return overall | {"setup_episodes": episodes, "setup_return": means}
