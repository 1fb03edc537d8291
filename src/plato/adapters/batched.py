"""Many games stepped together from NumPy, with auto-reset."""

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
from jaxtyping import PRNGKeyArray
from numpy.typing import ArrayLike

from plato.configuration import whole_number
from plato.domains.setups import load_setup
from plato.errors import PlatoError
from plato.game import NOOP, Capacity, Game, Observation, step_and_reset
from plato.seeding import seed_key

T = TypeVar("T")


class BatchedStep(NamedTuple):
    """What came of one step of every game. All arrays are NumPy's, games first."""

    observation: Observation
    """To act on next: of a new episode where the old one ended."""
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    final_observation: Observation
    """Of the state that the step led to, before any reset."""
    events: dict[str, np.ndarray]


class BatchedGame:
    """A fixed number of games of one kind, each begun anew when it ends.

    >>> games = BatchedGame("wildfire-3x3-S2", games=64, seed=0)
    >>> observation = games.reset()
    >>> step = games.step(np.zeros((64, games.capacity.agents), int))  # all NOOP
    """

    def __init__(
        self, game: str | Path | Game[Any, Any], *, games: int = 1, seed: int = 0
    ) -> None:
        whole_number("games", games, 1)
        self.game = game_of(game)
        self.games = games
        self._key = seed_key(seed)
        self._state: Any = None
        self._mask: np.ndarray | None = None

    @property
    def capacity(self) -> Capacity:
        """How many rows for agents and tasks, and actions per task."""
        return self.game.capacity

    def reset(self, seed: int | None = None) -> Observation:
        """Begins all games anew; with a seed, the same ones every time."""
        if seed is not None:
            self._key = seed_key(seed)
        self._key, self._state, observation, mask = _reset_all(
            self.game, self._key, self.games
        )
        self._mask = np.asarray(mask)
        return as_numpy(observation)

    def step(self, actions: ArrayLike) -> BatchedStep:
        """Takes one action for every agent of every game."""
        if self._mask is None:
            raise PlatoError("Call reset() before the first step().")
        chosen = check_actions(actions, self._mask)
        self._key, turn, mask = _step_all(self.game, self._key, self._state, chosen)
        self._state, self._mask = turn.state, np.asarray(mask)
        observation, final, outcome = as_numpy(
            (turn.observation, turn.final_observation, turn.outcome)
        )
        return BatchedStep(
            observation,
            outcome.reward,
            outcome.terminated,
            outcome.truncated,
            final,
            outcome.events,
        )


def game_of(game: str | Path | Game[Any, Any]) -> Game[Any, Any]:
    """The game of a named setup (or .toml file), or the game itself."""
    if isinstance(game, (str, Path)):
        return load_setup(game).game()
    return game


def as_numpy(tree: T) -> T:
    """The same pytree with NumPy arrays in it, not copied where that can be."""
    return jax.tree.map(np.asarray, tree)


def check_actions(actions: Any, mask: np.ndarray) -> np.ndarray:
    """The actions as integers, refused where an agent has no such option."""
    try:
        actions = np.asarray(actions)
    except ValueError:  # rows of different lengths
        actions = np.asarray(None)
    if actions.shape != mask.shape[:-1] or not np.issubdtype(actions.dtype, np.integer):
        raise PlatoError(
            f"actions must be whole numbers of shape {mask.shape[:-1]}, not "
            f"{actions.dtype} of shape {actions.shape}."
        )
    in_range = (actions >= 0) & (actions < mask.shape[-1])
    index = np.where(in_range, actions, NOOP)[..., None]
    allowed = in_range & np.take_along_axis(mask, index, axis=-1)[..., 0]
    if not allowed.all():
        place = tuple(int(i) for i in np.argwhere(~allowed)[0])
        offered = np.flatnonzero(mask[place]).tolist()
        raise PlatoError(
            f"actions[{', '.join(map(str, place))}] is {int(actions[place])}, which is "
            f"not offered to that agent now; choose one of {offered} (0 is NOOP)."
        )
    return actions.astype(np.int32)


@partial(jax.jit, static_argnames="games")
def _reset_all(game: Game[Any, Any], key: PRNGKeyArray, games: int):
    following, key = jax.random.split(key)
    state, observation = jax.vmap(game.reset)(jax.random.split(key, games))
    mask = jax.vmap(lambda o: o.action_mask)(observation)
    return following, state, observation, mask


@jax.jit
def _step_all(game: Game[Any, Any], key: PRNGKeyArray, state: Any, actions: Any):
    following, key = jax.random.split(key)
    keys = jax.random.split(key, actions.shape[0])
    turn = jax.vmap(partial(step_and_reset, game))(keys, state, actions)
    return following, turn, jax.vmap(lambda o: o.action_mask)(turn.observation)
