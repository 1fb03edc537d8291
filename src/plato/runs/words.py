"""What the summaries of a run say in words."""

from collections.abc import Mapping, Sequence

from plato.evaluation.evaluate import Evaluation
from plato.learners.budget import Budget
from plato.learners.config import TrainConfig

FEW = 3
"""Setups that a heading names; more of them it counts."""


def title(setups: Sequence[str]) -> str:
    """What was trained on."""
    return ", ".join(setups) if len(setups) <= FEW else f"{len(setups)} setups"


def share(config: TrainConfig, names: str) -> str:
    """How the trainings share several setups, with `names` where the title has none."""
    if len(config.setups) == 1:
        return ""
    how = "one" if config.fleet else "all"
    return (
        f"Each training plays {how} of {names if len(config.setups) > FEW else 'them'}."
    )


def how(config: TrainConfig, about: Mapping[str, str]) -> str:
    """How much was trained, and by what: `about` is the run's environment."""
    count = len(config.runs)
    trainings = "One training" if count == 1 else f"{count} trainings"
    return (
        f"{trainings} of {described(config.learning)} on {about['device']} "
        f"(PLATO {about['plato']}, JAX {about['jax']})."
    )


def described(budget: Budget) -> str:
    """How much a training plays."""
    size = f"{budget.updates} updates × {budget.games} games × {budget.steps} steps"
    if budget.beginnings == 1:
        return size
    return (
        f"{size} (the best of {budget.beginnings} beginnings after update "
        f"{budget.auditions}: {budget.played(budget.updates):,} steps in all)"
    )


def evaluated(config: TrainConfig, results: Sequence[Evaluation]) -> str:
    """How the last policies were played, and what is told of it."""
    first = results[0]
    last = first.first_seed + first.episodes - 1
    taken = "actions drawn" if config.method == "plato" else "likeliest actions"
    return (
        f"The last policies, {taken}, over {first.episodes} episodes (seeds "
        f"{first.first_seed}–{last}, {first.noise} noise), mean ± sample standard "
        f"deviation:"
    )
