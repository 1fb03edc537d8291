"""Optima that were found before: some take minutes on a GPU, and none ever changes."""

import json
from importlib import resources

from plato.domains.setups import Setup


def known_optimum(setup: Setup) -> float | None:
    """The optimal expected return of a shipped setup; None for any other.

    A setup counts as shipped by what it says, not by its name alone.
    """
    return _optima().get(setup.name) if setup.shipped else None


def _optima() -> dict[str, float]:
    text = (resources.files("plato") / "data" / "optima.json").read_text("utf-8")
    return {name: v for name, v in json.loads(text).items() if name != "about"}
