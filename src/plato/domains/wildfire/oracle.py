"""Policies that know the whole state of a wildfire, to compare others with."""

from abc import abstractmethod
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from plato.domains.wildfire.dynamics import WildfireState
from plato.errors import PlatoError
from plato.game import Observation, ReplayedState
from plato.policies.policy import Policy


class Oracle(Policy[None]):
    """Decides for the team from the state; what can be observed is not enough."""

    @abstractmethod
    def joint_action(self, state: WildfireState) -> Int[Array, " agent"]:
        """What the agents of the roster do, spare rows left out."""

    def start(self, agents: int) -> None:
        del agents

    def act(
        self, key: PRNGKeyArray, observation: Observation, memory: None
    ) -> tuple[Int[Array, " agent"], None]:
        raise PlatoError(
            f"{type(self).__name__} must see the whole state of the game; evaluate "
            f"it, or call act_knowing."
        )

    def act_knowing(
        self, key: PRNGKeyArray, state: Any, observation: Observation, memory: None
    ) -> tuple[Int[Array, " agent"], None]:
        del key, memory
        state = state.inner if isinstance(state, ReplayedState) else state
        actions = self.joint_action(state)
        spare = observation.present.shape[0] - actions.shape[0]
        return jnp.pad(actions, (0, spare)), None
