"""Writes the golden checkpoints: `python tests/golden/write.py`, once per release.

What is in the repository is what that release wrote; it is not written again, because
the point is that later releases still read it.
"""

import json
from pathlib import Path

import jax
import numpy as np

from plato.deploy import DeployedPolicy
from plato.game import Features
from plato.policies.checkpoint import save_policy
from plato.policies.config import ActorConfig
from plato.policies.padded import PaddedShape
from plato.policies.pointer import PointerActor

HERE = Path(__file__).parent
# Spelled out, because what was the default when they were written is not any more.
VARIANTS = {
    "default": ActorConfig(hidden=8, away="removed", context="pointer"),
    "paper-form": ActorConfig(
        hidden=8,
        query="statistics",
        ego=False,
        away="removed",
        context="none",
        scorer="dot",
    ),
    "lstm": ActorConfig(
        hidden=8, encoder="lstm", away="flagged", context="pointer", heads=2
    ),
}
FEATURES = Features(agent=4, task=4, actions=1)


def moment() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three agents and five tasks, fixed for good."""
    numbers = np.sin(np.arange(32, dtype=np.float32) ** 1.5)
    options = np.arange(15).reshape(3, 5) % 4 != 0
    return numbers[:12].reshape(3, 4), numbers[12:].reshape(5, 4), options


def main() -> None:
    for name, config in VARIANTS.items():
        actor = PointerActor.create(config, FEATURES, key=jax.random.key(7))
        actor = jax.tree.map(lambda leaf: 2 * leaf, actor)
        path, shape = HERE / f"{name}.safetensors", PaddedShape(1, *FEATURES)
        save_policy(path, actor, config, shape, {"seed": 42})
        found = DeployedPolicy(actor).decide(*moment()).probabilities
        rows = [[round(float(p), 6) for p in row] for row in found]
        (HERE / f"{name}.json").write_text(json.dumps(rows) + "\n")


if __name__ == "__main__":
    main()
