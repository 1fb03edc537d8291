"""What can play a game: anything that maps observations to actions."""

from abc import abstractmethod
from typing import Any, Generic, TypeVar

import equinox as eqx
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from plato.game import Observation

Memory = TypeVar("Memory")


class Policy(eqx.Module, Generic[Memory]):
    """Decides for all agents of one game at once; its arrays are its parameters.

    It is asked about every row, but only present agents act: a policy gives NOOP for
    the others, and takes no action outside an agent's options.
    """

    @abstractmethod
    def start(self, agents: int) -> Memory:
        """The memory with which an episode begins (None for policies without)."""

    @abstractmethod
    def act(
        self, key: PRNGKeyArray, observation: Observation, memory: Memory
    ) -> tuple[Int[Array, " agent"], Memory]:
        """One action for each agent, and the memory for the next decision."""

    def known(self, observation: Observation) -> Bool[Array, "agent choice"]:
        """Which actions it can choose at all: what is offered, unless it lacks room."""
        return observation.action_mask

    def act_knowing(
        self, key: PRNGKeyArray, state: Any, observation: Observation, memory: Memory
    ) -> tuple[Int[Array, " agent"], Memory]:
        """As `act`, with the game's whole state at hand; only oracles look at it."""
        del state
        return self.act(key, observation, memory)
