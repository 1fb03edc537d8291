"""The paper's fire-fighting rules: the weakest fire first, or the strongest.

The released versions of both make a mistake that the paper's rows contain: an agent
that reaches k fires compares the intensities of the first k fires *of the grid*, and
then fights the reachable fire at the winning position of its own list. They are kept,
as `weakest_released` and `strongest_released`, to reproduce those rows.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from plato.domains.wildfire.game import TASK_FEATURES
from plato.game import Observation
from plato.masking import masked_min
from plato.policies.rules import ActionSets, Preference, noop, uniform

INTENSITY = TASK_FEATURES.index("intensity")


def weakest(observation: Observation) -> ActionSets:
    """The least intense fires in reach."""
    return _least(observation, _intensity_in_reach(observation))


def strongest(observation: Observation) -> ActionSets:
    """The most intense fires in reach."""
    return _least(observation, -_intensity_in_reach(observation))


def weakest_released(observation: Observation) -> ActionSets:
    """The released Weakest, which looks at the wrong fires."""
    return _least(observation, _intensity_of_first_fires(observation))


def strongest_released(observation: Observation) -> ActionSets:
    """The released Strongest, which looks at the wrong fires."""
    return _least(observation, -_intensity_of_first_fires(observation))


def _reach(observation: Observation) -> Bool[Array, "agent task"]:
    return observation.options[:, :, 0]


def _intensity_in_reach(observation: Observation) -> Float[Array, "agent task"]:
    intensity = observation.tasks[:, INTENSITY]
    return jnp.broadcast_to(intensity, _reach(observation).shape)


def _intensity_of_first_fires(observation: Observation) -> Float[Array, "agent task"]:
    """For an agent's i-th fire in reach, the intensity of the grid's i-th fire."""
    exists, reach = observation.exists, _reach(observation)
    # Existing tasks moved to the front, in order; a stable sort keeps the order.
    in_order = observation.tasks[jnp.argsort(~exists, stable=True), INTENSITY]
    position = jnp.maximum(jnp.cumsum(reach, axis=1) - 1, 0)
    return in_order[position]


def _least(observation: Observation, score: Float[Array, "agent task"]) -> ActionSets:
    reach = _reach(observation)
    best = masked_min(score, reach, axis=1)
    liked = reach & (score == best[:, None])
    never_noop = jnp.zeros((liked.shape[0], 1), bool)
    return jnp.concatenate([never_noop, liked], axis=1)


RULES: dict[str, Preference] = {
    "noop": noop,
    "random": uniform,
    "weakest": weakest,
    "strongest": strongest,
    "weakest-released": weakest_released,
    "strongest-released": strongest_released,
}
"""Every policy by rule that can play wildfire, by the name users give it."""
