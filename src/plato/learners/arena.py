"""The games of some trainings: the setups of each in turn, stacked, with their maps.

Games that are not at home may get other maps of the same kind now and then: who plays
but a few for long comes to know these, and not how to play on any.
"""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from plato.domains.setups import Rows, Setup
from plato.domains.wildfire.maps import SCATTERED, moved, scattered
from plato.domains.wildfire.paper_noise import with_paper_noise
from plato.errors import PlatoError
from plato.game import NO_ARRAYS, Game, ReplayedNoise, stack
from plato.learners.config import Maps, TrainConfig
from plato.tensors import named_leaves


class Arena:
    """The games of all runs, stacked over runs, as they are at some update."""

    def __init__(
        self,
        config: TrainConfig,
        setups: Sequence[Sequence[Setup]],
        rows: Rows,
        seeds: Sequence[int],
    ) -> None:
        """`setups` and `seeds` are those of each run; all have the same room."""
        self._config, self._setups, self._rows = config, setups, rows
        self._seeds = seeds
        self._painter = ThreadPoolExecutor(1)
        self._ahead: tuple[int, Future[Game[Any, Any]]] | None = None
        self._round = 0
        self.games = self._drawn(0)

    def turn_to(self, update: int) -> bool:
        """The games of that update, from 1; whether it is the first on other maps."""
        every = self._config.new_maps
        if not every:
            return False
        number, since = divmod(update - 1, every)
        if number != self._round:
            ahead, self._ahead = self._ahead, None
            if ahead is not None and ahead[0] == number:
                self.games = ahead[1].result()
            else:  # a training that is resumed
                self.games = self._drawn(number)
            self._round = number
        following = (number + 1) * every
        if self._ahead is None and following < self._config.learning.updates:
            self._ahead = number + 1, self._painter.submit(self._drawn, number + 1)
        return since == 0 and number > 0

    def _drawn(self, number: int) -> Game[Any, Any]:
        """The games with their maps of a round: they depend on nothing before."""
        randoms = [np.random.default_rng([seed, number]) for seed in self._seeds]
        if number == 0:  # as of a training that keeps its maps
            randoms = [np.random.default_rng(seed) for seed in self._seeds]
        each = zip(self._setups, randoms, strict=True)
        return stack(
            [
                _games(self._config, setups, self._rows, random)
                for setups, random in each
            ]
        )


def _games(
    config: TrainConfig,
    setups: Sequence[Setup],
    rows: Rows,
    random: np.random.Generator,
) -> Game[Any, Any]:
    """The games of one run, stacked: its setups in turn, all with the same capacity."""
    each = config.learning.games // len(setups)

    def repeated(tree: Any) -> Any:
        return stack([tree] * each)

    parts: list[Any] = []
    for setup in setups:
        game = setup.game(rows)
        if not jax.tree.leaves(game):
            raise PlatoError(f"{setup.name}: {NO_ARRAYS}")
        games = repeated(game)
        if config.maps != "own":
            games = _on_other_maps(games, setup, config.maps, random)
        if config.noise == "paper":
            noisy = with_paper_noise(games, setup.config)
            games = ReplayedNoise(games, repeated(noisy.record))
        parts.append(games)
        if difference := _difference(parts[0], games):
            raise PlatoError(
                f"{setups[0].name} and {setup.name} cannot be trained as one, for they "
                f"differ in {difference}; make that the same in both, or add --fleet, "
                f"which trains them apart."
            )
    return joined(parts)


def _on_other_maps(
    games: Any, setup: Setup, maps: Maps, random: np.random.Generator
) -> Any:
    """The games of a setup, those that are away from home on maps of their own.

    Maps are made one by one, of small arrays: on an accelerator each would be a trip.
    """
    with _on_the_host():
        if maps != "strange":
            games = moved(games, setup.config, random)
        if maps in SCATTERED:
            games = scattered(games, setup.config, random, SCATTERED[maps])
        made = jax.tree.map(np.asarray, games)
    return jax.tree.map(jnp.asarray, made)


def _on_the_host() -> AbstractContextManager[Any]:
    """Where arrays are made on the CPU, if JAX was not told to do without."""
    try:
        return jax.default_device(jax.local_devices(backend="cpu")[0])
    except RuntimeError:
        return nullcontext()


def joined(stacks: Sequence[Any]) -> Any:
    """Stacks as one."""
    if len(stacks) == 1:
        return stacks[0]
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *stacks)


def _difference(some: Any, others: Any) -> str | None:
    """What keeps two batches of games from being put together."""
    if jax.tree.structure(some) != jax.tree.structure(others):
        return "their class or its static fields"
    for (name, one), (_, other) in zip(
        named_leaves(some), named_leaves(others), strict=True
    ):
        shapes = [list(leaf.shape[1:]) for leaf in (one, other)]
        if shapes[0] != shapes[1]:
            return f"the shape of {name} ({shapes[0]} and {shapes[1]})"
    return None
