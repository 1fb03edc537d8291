"""PettingZoo views of a game: `parallel_env` and `aec_env`.

An agent stays in the list while its game goes on, as in the reference environment; one
that is away has NOOP alone in its `action_mask`. Rows of tasks keep their places, and
those that do not exist now are zero, with `exists` telling which do.
"""

from typing import Any

import jax
import numpy as np

from plato.adapters.batched import as_numpy, check_actions, game_of
from plato.errors import PlatoError
from plato.game import NOOP, Game, Observation

try:
    from gymnasium import spaces
    from pettingzoo import AECEnv, ParallelEnv
    from pettingzoo.utils import OrderEnforcingWrapper
    from pettingzoo.utils.conversions import parallel_to_aec
except ImportError:
    raise PlatoError(
        "PettingZoo is not installed; install it with: pip install 'plato-marl[zoo]'."
    ) from None


def parallel_env(game: str | Game[Any, Any]) -> "GameParallelEnv":
    """A `ParallelEnv` of a named setup, a setup's .toml file, or a game."""
    return GameParallelEnv(game_of(game))


def aec_env(game: str | Game[Any, Any]) -> AECEnv:
    """An `AECEnv` of the same: agents take turns, and the game moves after the last."""
    return OrderEnforcingWrapper(parallel_to_aec(parallel_env(game)))


class GameParallelEnv(ParallelEnv):
    """One game, with dictionaries keyed by agent name."""

    metadata = {"name": "plato_v0", "render_modes": [], "is_parallelizable": True}  # noqa: RUF012
    render_mode = None

    def __init__(self, game: Game[Any, Any]) -> None:
        self._game = game
        self._key = jax.random.key(0)
        self._state: Any = None
        self._observation: Observation
        self._mask: np.ndarray
        self._begin()
        self._rows = np.flatnonzero(np.asarray(game.roster)).tolist()
        self.possible_agents = [game.agent_name(row) for row in self._rows]
        self.agents: list[str] = []
        self.observation_spaces = {
            a: self._space(i) for i, a in enumerate(self.possible_agents)
        }
        self.action_spaces = {
            a: Options(self, row)
            for a, row in zip(self.possible_agents, self._rows, strict=True)
        }

    def action_mask(self) -> np.ndarray:
        """The actions that every row of agents may take now."""
        return self._mask

    def observation_space(self, agent: str) -> spaces.Space:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space:
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        del options
        if seed is not None:
            self._key = jax.random.key(seed)
        self._begin()
        self.agents = list(self.possible_agents)
        return self._observations(), self._infos()

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[
        dict[str, Any],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, Any],
    ]:
        if not self.agents:
            raise PlatoError("The game is over; call reset() before the next step().")
        chosen = self._checked(actions)
        self._key, self._state, seen = _step(self._game, self._key, self._state, chosen)
        self._observation, self._mask, outcome = as_numpy(seen)
        names = self.agents
        rewards = {
            a: float(outcome.reward[row])
            for a, row in zip(names, self._rows, strict=True)
        }
        terminated = {a: bool(outcome.terminated) for a in names}
        truncated = {a: bool(outcome.truncated) for a in names}
        observations, infos = self._observations(), self._infos()
        if outcome.terminated or outcome.truncated:
            self.agents = []
        return observations, rewards, terminated, truncated, infos

    def render(self) -> None:
        """Nothing to show; PettingZoo asks for the method."""

    def state(self) -> np.ndarray:
        """Features and presence of all agents, then of all tasks, in one vector."""
        seen = self._observation
        agents = np.concatenate([seen.agents, seen.present[:, None]], axis=1)
        tasks = np.concatenate([seen.tasks, seen.exists[:, None]], axis=1)
        existing = np.where(seen.exists[:, None], tasks, 0)
        return np.concatenate([agents.ravel(), existing.ravel()]).astype(np.float32)

    def _checked(self, actions: dict[str, Any]) -> np.ndarray:
        unknown = set(actions) - set(self.agents)
        missing = [agent for agent in self.agents if agent not in actions]
        if unknown or missing:
            raise PlatoError(
                f"step() takes one action for each of {self.agents}; missing: "
                f"{missing}, unknown: {sorted(unknown)}."
            )
        mask = self.action_mask()
        everyone = np.full(mask.shape[0], NOOP)
        for agent, row in zip(self.agents, self._rows, strict=True):
            everyone[row] = actions[agent]
        return check_actions(everyone, mask)

    def _observations(self) -> dict[str, Any]:
        return {a: self._view(i) for i, a in enumerate(self.agents)}

    def _infos(self) -> dict[str, Any]:
        mask = self.action_mask()
        return {
            a: {"action_mask": mask[row].astype(np.int8)}
            for a, row in zip(self.agents, self._rows, strict=True)
        }

    def _view(self, index: int) -> dict[str, np.ndarray]:
        """What one agent sees: itself, its teammates, and the tasks."""
        seen, row = self._observation, self._rows[index]
        others = [other for other in self._rows if other != row]
        visible = seen.sees_agents[row, others][:, None]
        teammates = np.where(visible, seen.agents[others], 0)[:, seen.public]
        exists = np.asarray(seen.exists & seen.sees_tasks[row])
        return {
            "self": np.asarray(seen.agents[row]),
            "others": teammates.astype(np.float32),
            "present": np.asarray(seen.present[others] & visible[:, 0], np.int8),
            "tasks": np.where(exists[:, None], seen.tasks, 0).astype(np.float32),
            "exists": exists.astype(np.int8),
            "action_mask": self.action_mask()[row].astype(np.int8),
        }

    def _space(self, index: int) -> spaces.Dict:
        view = self._view(index)
        flags = ("present", "exists", "action_mask")
        return spaces.Dict(
            {
                name: spaces.MultiBinary(array.shape)
                if name in flags
                else spaces.Box(-np.inf, np.inf, array.shape, np.float32)
                for name, array in view.items()
            }
        )

    def _begin(self) -> None:
        self._key, self._state, seen = _reset(self._game, self._key)
        self._observation, self._mask = as_numpy(seen)


class Options(spaces.Discrete):
    """The actions of one agent; sampled, unless told otherwise, among its options."""

    def __init__(self, env: GameParallelEnv, row: int) -> None:
        super().__init__(env.action_mask().shape[1])
        self._env, self._row = env, row

    def sample(self, mask: Any = None, probability: Any = None) -> np.int64:
        if mask is None and probability is None:
            mask = self._env.action_mask()[self._row].astype(np.int8)
        return super().sample(mask, probability)


@jax.jit
def _reset(game: Game[Any, Any], key: Any):
    following, key = jax.random.split(key)
    state, observation = game.reset(key)
    return following, state, (observation, observation.action_mask)


@jax.jit
def _step(game: Game[Any, Any], key: Any, state: Any, actions: Any):
    following, key = jax.random.split(key)
    state, observation, outcome = game.step(key, state, actions)
    return following, state, (observation, observation.action_mask, outcome)
