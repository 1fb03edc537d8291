"""Trials: short trainings, side by side in one program where their shapes agree."""

import os
from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from plato.domains.setups import Setup
from plato.evaluation.evaluate import evaluate
from plato.evaluation.named import acting
from plato.evaluation.protocols import VALIDATION
from plato.learners.config import MethodName, TrainConfig
from plato.learners.program import Group
from plato.policies.policy import Policy
from plato.tuning.spaces import SPACES, Range, configuration

Found = Mapping[str, float]
"""The value of each setting that is searched."""


def scores(
    method: MethodName,
    setup: Setup,
    trials: Sequence[Found],
    *,
    steps: int,
    seed: int,
    validation: int,
) -> list[float]:
    """The mean validation return of each trial; NaN where its training broke down."""
    configs = [
        configuration(method, setup.name, found, steps=steps, seed=seed)
        for found in trials
    ]
    numbers = [name for name, of in SPACES[method].items() if isinstance(of, Range)]
    together: dict[Hashable, list[int]] = {}
    for i, config in enumerate(configs):
        together.setdefault(shape(config, numbers), []).append(i)

    def trained(members: list[int]) -> list[Policy[Any]]:
        values = {name: [trials[i][name] for i in members] for name in numbers}
        return _train(configs[members[0]], setup, values)

    # Programs of different shapes are compiled and run side by side, one to a core.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        policies = list(pool.map(trained, together.values()))
    result = np.full(len(trials), np.nan)
    for members, found in zip(together.values(), policies, strict=True):
        result[members] = [_score(policy, setup, validation) for policy in found]
    return result.tolist()


def shape(config: TrainConfig, numbers: Sequence[str]) -> Hashable:
    """What of a configuration programs cannot have as data."""
    learning = vars(config.learning).items()
    return config.networks, tuple((k, v) for k, v in learning if k not in numbers)


def _train(config: TrainConfig, setup: Setup, values: Mapping[str, Sequence[float]]):
    arrays = {name: jnp.asarray(column) for name, column in values.items()}
    count = len(next(iter(values.values())))
    # A seed of its own for each would be luck that the search mistakes for merit.
    group = Group(config, {setup.name: setup}, config.runs * count, arrays)
    learner = group.start()
    for update in range(config.learning.updates):
        learner, _ = group.advance(learner, update + 1)
    return group.policies(learner)


def _score(policy, setup: Setup, episodes: int) -> float:
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(policy)):
        return float("nan")
    player = acting(policy, "own")
    played = evaluate(player, setup, episodes=episodes, seed=VALIDATION.start)
    return float(played.metrics["return"].mean())
