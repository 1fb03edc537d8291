"""PLATO: Pointer Learner for Agent and Task Openness.

Names are imported when they are first used, so that `import plato` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "BatchedGame": "plato.adapters.batched",
    "Game": "plato.game",
    "Observation": "plato.game",
    "Outcome": "plato.game",
    "PlatoError": "plato.errors",
    "Policy": "plato.policies.policy",
    "Wildfire": "plato.domains.wildfire.game",
    "aec_env": "plato.adapters.zoo",
    "check_game": "plato.checking",
    "evaluate": "plato.evaluation.evaluate",
    "export": "plato.deploy",
    "load": "plato.deploy",
    "load_setup": "plato.domains.setups",
    "parallel_env": "plato.adapters.zoo",
    "pretrained": "plato.deploy",
    "pretrained_names": "plato.policies.pretrained",
    "setup_names": "plato.domains.setups",
    "stack": "plato.game",
    "step_and_reset": "plato.game",
}

__all__ = [*_HOMES, "__version__"]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'plato' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


if TYPE_CHECKING:
    from plato.adapters.batched import BatchedGame as BatchedGame
    from plato.adapters.zoo import aec_env as aec_env
    from plato.adapters.zoo import parallel_env as parallel_env
    from plato.checking import check_game as check_game
    from plato.deploy import export as export
    from plato.deploy import load as load
    from plato.deploy import pretrained as pretrained
    from plato.domains.setups import load_setup as load_setup
    from plato.domains.setups import setup_names as setup_names
    from plato.domains.wildfire.game import Wildfire as Wildfire
    from plato.errors import PlatoError as PlatoError
    from plato.evaluation.evaluate import evaluate as evaluate
    from plato.game import Game as Game
    from plato.game import Observation as Observation
    from plato.game import Outcome as Outcome
    from plato.game import stack as stack
    from plato.game import step_and_reset as step_and_reset
    from plato.policies.policy import Policy as Policy
    from plato.policies.pretrained import pretrained_names as pretrained_names
