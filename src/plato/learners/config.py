"""How to learn. Imports nothing heavy: the command line reads it."""

from dataclasses import dataclass

from plato.errors import PlatoError


@dataclass(frozen=True)
class MappoConfig:
    """How to learn."""

    games: int = 256
    """Games played side by side."""
    steps: int = 100
    """Steps of each game between two updates."""
    updates: int = 600
    """Rollouts, each followed by an update."""
    epochs: int = 4
    """Passes over each rollout."""
    minibatches: int = 8
    """Gradient steps in a pass."""
    gamma: float = 0.99
    """Discount."""
    lam: float = 0.95
    """GAE's lambda."""
    clip: float = 0.2
    """PPO's clip range, for the policy's ratio and for (normalised) values."""
    entropy: float = 0.1
    """Weight of the entropy bonus at the start."""
    entropy_end: float = 0.001
    """The same at the end; in between it falls geometrically."""
    actor_rate: float = 5e-4
    """Learning rate of the actor."""
    critic_rate: float = 9e-4
    """Learning rate of the critic."""
    rate_end: float = 0.05
    """What is left of both learning rates at the end; they fall linearly."""
    max_norm: float = 1.0
    """Norm to which each network's gradient is clipped."""
    adam_epsilon: float = 1e-5
    value_normalisation: bool = True
    """Whether the critic learns returns in units of their running spread."""

    def __post_init__(self) -> None:
        for name in ("games", "steps", "updates", "epochs", "minibatches"):
            if getattr(self, name) < 1:
                raise PlatoError(f"{name} must be at least 1.")
