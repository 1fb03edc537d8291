"""Trained policies that come with the package: one for each native setup, and one for
all of them and whatever else there is."""

from importlib import resources
from pathlib import Path

from plato.errors import PlatoError

PRETRAINED = "pretrained"
"""What commands call them: `pretrained`, or `pretrained:NAME` for a certain one."""
GENERALIST = "generalist"
"""The name of one that was trained on several setups."""


def pretrained_names() -> list[str]:
    """What there is: the setups that they were trained on, and the generalist."""
    files = [path.name for path in _shipped().iterdir()]
    return sorted(name.removesuffix(".safetensors") for name in files)


def pretrained_file(name: str) -> Path:
    """Where the weights of one of them are."""
    if name not in pretrained_names():
        raise PlatoError(
            f"There is no pretrained policy named {name!r}; choose from: "
            f"{', '.join(pretrained_names())}."
        )
    return Path(str(_shipped() / f"{name}.safetensors"))


def is_pretrained(policy: str) -> bool:
    """Whether the name of a policy means one of them."""
    return policy == PRETRAINED or policy.startswith(f"{PRETRAINED}:")


def meant_by(policy: str, setup: str = "") -> Path:
    """The file that `pretrained` or `pretrained:NAME` means on a setup.

    Without a NAME: what was trained on that setup, else the generalist.
    """
    _, _, name = policy.partition(":")
    own = setup if setup in pretrained_names() else GENERALIST
    return pretrained_file(name or own)


def _shipped():
    return resources.files("plato.data") / "pretrained"
