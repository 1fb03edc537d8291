"""What of a training is compiled: once, for all trainings of its kind."""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from functools import lru_cache, partial
from threading import Lock
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from plato.domains.wildfire.maps import MOVED
from plato.game import WithinReach, how_many, select
from plato.learners.advice import Advisers
from plato.learners.beginnings import key_of
from plato.learners.config import Learning, Networks
from plato.learners.methods import Method, method_of
from plato.learners.returns import returned
from plato.learners.rollout import set_the_stage
from plato.policies.padded import PaddedShape
from plato.policies.pointer import PointerActor

KINDS = 16
"""How many are kept compiled in a process, the latest ones."""
ONCE = {"xla_backend_optimization_level": 1}
"""For programs that run once: compiled in half the time, to the same numbers."""


@dataclass(frozen=True)
class Kind:
    """What a compiled training depends on, but for what it is given as data."""

    networks: Networks
    learning: Learning
    shape: PaddedShape
    setups: int
    """Of each run."""
    mapped: bool
    """Whether there are several runs."""
    reach: WithinReach | None = None
    """What agents may ever be offered, for MOHITO's critics."""

    def method(
        self,
        numbers: Mapping[str, Array] | None = None,
        advisers: Advisers | None = None,
        predecessor: PointerActor | None = None,
    ) -> Method:
        """With some numbers in place of those that it has."""
        learning = with_numbers(self.learning, numbers or {})
        return method_of(
            self.networks,
            learning,
            self.shape,
            self.setups,
            self.reach,
            advisers,
            predecessor,
        )


def compiled(kind: Kind) -> tuple[Any, Any, Any]:
    """How a run begins, the next update of all runs, and how they go on when some of
    their games have other maps.

    A training that is resumed or repeated in the same process finds them compiled, and
    threads that ask at the same time are given the same ones.
    """
    with _asking:
        return _programs(kind)


_asking = Lock()


@lru_cache(maxsize=KINDS)
def _programs(kind: Kind) -> tuple[Any, Any, Any]:

    def of_all(function: Callable[..., Any]) -> Callable[..., Any]:
        own = partial(function, kind)
        return jax.jit(jax.vmap(own) if kind.mapped else _single(own), donate_argnums=1)

    begin = jax.jit(partial(_begin, kind), compiler_options=ONCE)
    return begin, of_all(_step), of_all(_restage)


def _begin(kind: Kind, games, keys, game_keys, predecessors, run, number):
    # From stacks of all runs to a stack of one: outside of a compiled program, to take
    # and to make them is to compile one for every shape.
    games, key, game_key, predecessor = of_run(
        (games, keys, game_keys, predecessors), run
    )
    new = kind.method(predecessor=predecessor).create(
        games, key=key_of(key, number), game_key=key_of(game_key, number)
    )
    return jax.tree.map(lambda leaf: leaf[None], new)


def _step(kind: Kind, games, learner, key, game_key, number, numbers, advisers):
    following, metrics = kind.method(numbers, advisers).update(
        games, learner, key_of(key, number), key_of(game_key, number)
    )
    ended, total = metrics.pop("ended"), metrics.pop("total")
    return following, metrics | returned(ended, total, kind.setups)


def _restage(kind: Kind, games, learner, game_key, number, update):
    away = np.zeros(how_many(games) // kind.setups, bool)
    away[MOVED] = True
    # Not what any rollout is played with: these count updates from the other end.
    key = jax.random.fold_in(key_of(game_key, number), jnp.uint32(0) - update)
    anew = set_the_stage(games, kind.method().policy(learner), key)
    where = jnp.asarray(np.tile(away, kind.setups))
    stage = jax.vmap(select)(where, anew, learner.stage)
    return eqx.tree_at(lambda learner: learner.stage, learner, stage)


def _single(function: Callable[..., Any]) -> Callable[..., Any]:
    """In place of a map over the only run, which would take longer to compile."""

    def single(*arguments: Any) -> Any:
        result = function(*of_run(arguments, 0))
        return jax.tree.map(lambda leaf: leaf[None], result)

    return single


def of_run(tree: Any, index: int | Int[Array, ""]) -> Any:
    """One run's part of something stacked over runs."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


def with_numbers(learning: Learning, numbers: Mapping[str, Array]) -> Learning:
    """Settings with some numbers in place of what they have; arrays are welcome."""
    changed = copy(learning)
    for name, number in numbers.items():
        object.__setattr__(changed, name, number)
    return changed
