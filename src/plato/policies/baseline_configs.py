"""Which baseline networks to build. Imports nothing heavy: the command line reads it.

Defaults are the paper's where it gives a number, and otherwise those of each method's
own code. How the networks learn is configured with their learning rules.
"""

from dataclasses import dataclass
from typing import Literal

from plato.configuration import whole_number
from plato.errors import PlatoError


@dataclass(frozen=True)
class DicgConfig:
    """Which deep implicit coordination graph."""

    execution: Literal["centralised", "decentralised"] = "centralised"
    """Where the graph is: in the policy, or in the critic alone."""
    pad: int = 8
    """Room for tasks: the most of all games to be played, or fewer to truncate."""
    hidden: int = 128
    """Width of the encoder, and of embeddings all through the graph."""
    layers: int = 2
    """Graph convolutions."""
    policy: tuple[int, ...] = (128, 64, 32)
    """Widths of the policy's hidden layers."""
    critic_hidden: int = 128
    """Width of the critic's other hidden layers (64 in the method's own code)."""
    frozen_gcn: bool = False
    """Whether the graph convolutions stay the random maps they begin as, which is what
    the method's own code does (by mistake: they are missing from its parameters)."""

    def __post_init__(self) -> None:
        for name in ("pad", "hidden", "layers", "critic_hidden"):
            whole_number(f"dicg.{name}", getattr(self, name), 1)
        for width in self.policy:
            whole_number("dicg.policy", width, 1)


@dataclass(frozen=True)
class DgnConfig:
    """Which graph convolutional Q-network."""

    pad: int = 8
    """Room for tasks: the most of all games to be played, or fewer to truncate."""
    hidden: int = 128
    """Width of the encoder and of every relation layer."""
    depth: int = 2
    """Layers of the encoder."""
    layers: int = 2
    """Relation layers: how many hops away news comes from."""
    heads: int = 8
    """Relations in each layer."""
    head_size: int = 16
    """Width of the queries, keys and values of one relation."""
    neighbours: int = 3
    """How many of the others are in an agent's neighbourhood, the nearest first."""
    position: tuple[int, ...] = (0, 1)
    """Which columns of an agent's features say where it is."""

    def __post_init__(self) -> None:
        for name in ("pad", "hidden", "depth", "layers", "heads", "head_size"):
            whole_number(f"dgn.{name}", getattr(self, name), 1)
        whole_number("dgn.neighbours", self.neighbours, 0)
        if not self.position:
            raise PlatoError("dgn.position is empty; name the columns of a place.")
        for column in self.position:
            whole_number("dgn.position", column, 0)
