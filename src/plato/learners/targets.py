"""What actor and critic are taught: advantages and values, on one scale.

Setups that are trained together differ much in what there is to win, and how soon.
Values have a scale of their own in each, and an advantage counts as so many steps'
worth of the rewards there: what all of them strive for together is the mean of their
returns, each as a part of what it is. So none drowns the others; nor does one whose
games are won at once, and begun a hundred times as often as those of another that looks
the same.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from plato.learners.gae import advantages
from plato.masking import masked_mean


class Scale(eqx.Module):
    """Running first and second moments of the returns the critic learns."""

    mean: Float[Array, "*setup"]
    square: Float[Array, "*setup"]
    weight: Float[Array, "*setup"]

    @classmethod
    def create(cls, setups: int = 1) -> "Scale":
        nothing = jnp.zeros(() if setups == 1 else setups)
        return cls(nothing, nothing, nothing)

    def moments(self) -> tuple[Float[Array, "*setup"], Float[Array, "*setup"]]:
        """Mean and standard deviation; 0 and 1 before anything was seen."""
        weight = jnp.maximum(self.weight, 1e-8)
        mean = self.mean / weight
        variance = jnp.maximum(self.square / weight - mean**2, 1e-4)
        known = self.weight > 0
        return jnp.where(known, mean, 0.0), jnp.where(known, jnp.sqrt(variance), 1.0)

    def updated(self, returns: Array, decay: float = 0.9) -> "Scale":
        return Scale(
            decay * self.mean + (1 - decay) * returns.mean(),
            decay * self.square + (1 - decay) * (returns**2).mean(),
            decay * self.weight + (1 - decay),
        )


class Played(NamedTuple):
    """What targets are computed from; values as the critic gave them, normalised."""

    value: Float[Array, "time game"]
    following: Float[Array, "time game"]
    """Values of the states that steps led to."""
    reward: Float[Array, "time game"]
    terminated: Bool[Array, "time game"]
    done: Bool[Array, "time game"]
    choice: Bool[Array, "time game agent"]
    """Agents that could do anything but NOOP."""


class Targets(NamedTuple):
    """What is learned from."""

    advantage: Float[Array, "time game"]
    value: Float[Array, "time game"]
    """As the critic gave it when the games were played, in the units of `target`."""
    target: Float[Array, "time game"]


def targets(
    scale: Scale,
    played: Played,
    gamma: Float[Array, ""],
    lam: Float[Array, ""],
    *,
    normalise: bool,
    setups: int,
) -> tuple[Scale, Targets]:
    """Targets of games that come in equal blocks, one for each setup."""

    def one_setup(scale: Scale, played: Played) -> tuple[Scale, Targets]:
        mean, spread = scale.moments()
        value = played.value * spread + mean
        advantage = advantages(
            played.reward,
            value,
            played.following * spread + mean,
            played.terminated,
            played.done,
            gamma,
            lam,
        )
        returns = advantage + value
        if setups > 1:
            worth = jnp.abs(played.reward).mean()
            advantage /= jnp.where(worth > 0, worth, 1.0)
        later = scale.updated(returns) if normalise else scale
        new_mean, new_spread = later.moments()
        return later, Targets(
            advantage=advantage,
            value=(value - new_mean) / new_spread,
            target=(returns - new_mean) / new_spread,
        )

    later, found = _each(setups, one_setup)(scale, played)
    advantage = normalised(found.advantage, played.choice)
    return later, found._replace(advantage=advantage)


def normalised(
    advantage: Float[Array, "time game"], choice: Bool[Array, "time game agent"]
) -> Float[Array, "time game"]:
    """Advantages with mean 0 and spread 1 over the agent-steps that had a choice."""
    each = jnp.broadcast_to(advantage[:, :, None], choice.shape)
    mean = masked_mean(each, choice)
    variance = masked_mean((each - mean) ** 2, choice)
    return (advantage - mean) / jnp.sqrt(variance + 1e-8)


def _each(
    setups: int, one_setup: Callable[[Scale, Played], tuple[Scale, Targets]]
) -> Callable[[Scale, Played], tuple[Scale, Targets]]:
    """The same for blocks of games, each with a scale of its own."""
    if setups == 1:
        return one_setup

    def blocks(array: Array) -> Array:
        time, games, *rest = array.shape
        return array.reshape(time, setups, games // setups, *rest)

    def joined(array: Array) -> Array:
        time, _, _, *rest = array.shape
        return array.reshape(time, -1, *rest)

    def each(scale: Scale, played: Played) -> tuple[Scale, Targets]:
        mapped = jax.vmap(one_setup, in_axes=(0, 1), out_axes=(0, 1))
        later, found = mapped(scale, jax.tree.map(blocks, played))
        return later, jax.tree.map(joined, found)

    return each
