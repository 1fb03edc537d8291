"""Which MOHITO networks to build. Imports nothing heavy: the command line reads it."""

from dataclasses import dataclass
from typing import Literal

from plato.errors import PlatoError


@dataclass(frozen=True)
class MohitoConfig:
    """The graph networks of MOHITO's actors and critics, which have the same recipe."""

    hidden: int = 32
    """Width of one attention head."""
    layers: int = 3
    """Attention layers, the first and the last among them."""
    heads: int = 2
    """Attention heads of all layers but the last, which has one."""
    activation: Literal["relu", "leaky_relu"] = "relu"
    """Between layers: ReLU, as in the seed paper, or the code's LeakyReLU(0.1)."""
    as_released: bool = False
    """Whether critics do as in the released code: read nodes by the numbering before
    teammates' are left out; read a batch laid end to end without offsets, so that
    almost all values are those of its first graph; and learn the mean reward of the
    batch in place of each transition's own."""

    def __post_init__(self) -> None:
        for name, least in (("hidden", 1), ("layers", 2), ("heads", 1)):
            if getattr(self, name) < least:
                raise PlatoError(f"mohito.{name} must be at least {least}.")
