"""PettingZoo views of a game: `parallel_env` and `aec_env`.

An agent stays in the list while its game goes on, as in the reference environment; one
that is away has NOOP alone in its `action_mask`. Rows of tasks keep their places, and
those that do not exist now are zero, with `exists` telling which do. Without a seed,
`reset` goes on with the stream of seed 0: every random number comes from a seed.
"""

import operator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from plato.adapters.batched import as_numpy, game_of
from plato.errors import PlatoError
from plato.game import NOOP, Game, Observation
from plato.seeding import seed_key

try:
    from gymnasium import spaces
    from pettingzoo import AECEnv, ParallelEnv
    from pettingzoo.utils import BaseWrapper, OrderEnforcingWrapper
    from pettingzoo.utils.conversions import parallel_to_aec
except ImportError:
    raise PlatoError(
        "PettingZoo is not installed; install it with: pip install 'plato-marl[zoo]'."
    ) from None


def parallel_env(game: str | Path | Game[Any, Any]) -> "GameParallelEnv":
    """A `ParallelEnv` of a named setup, a setup's .toml file, or a game."""
    return GameParallelEnv(game_of(game))


def aec_env(game: str | Path | Game[Any, Any]) -> AECEnv:
    """An `AECEnv` of the same: agents take turns, and the game moves after the last."""
    parallel = parallel_env(game)
    return OrderEnforcingWrapper(CheckedTurns(parallel_to_aec(parallel), parallel))


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
        self._rows = {
            game.agent_name(row): row
            for row in np.flatnonzero(np.asarray(game.roster)).tolist()
        }
        self.possible_agents = list(self._rows)
        self.agents: list[str] = []
        self.observation_spaces = {a: self._space(a) for a in self.possible_agents}
        self.action_spaces = {a: Options(self, row) for a, row in self._rows.items()}

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
            self._key = seed_key(seed)
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
            raise PlatoError("No game is under way; call reset() before step().")
        chosen = self._checked(actions)
        self._key, self._state, seen = _step(self._game, self._key, self._state, chosen)
        self._observation, self._mask, outcome = as_numpy(seen)
        names = self.agents
        rewards = {a: float(outcome.reward[self._rows[a]]) for a in names}
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
        if not isinstance(actions, dict) or set(actions) != set(self.agents):
            raise PlatoError(
                f"step() takes a dictionary with one action for each of {self.agents}."
            )
        everyone = np.full(self._mask.shape[0], NOOP, np.int32)
        for agent, action in actions.items():
            everyone[self._rows[agent]] = self.checked_action(agent, action)
        return everyone

    def checked_action(self, agent: str, action: Any) -> int:
        """The action as a number, refused if it is not offered to the agent now."""
        offered = np.flatnonzero(self._mask[self._rows[agent]]).tolist()
        try:
            number = operator.index(action)
        except TypeError:
            number = None
        if number not in offered or isinstance(action, bool):
            raise PlatoError(
                f"The action of {agent} is {action!r}, which is not offered to it now; "
                f"choose one of {offered} (0 is NOOP)."
            )
        return number

    def _observations(self) -> dict[str, Any]:
        return {a: self._view(a) for a in self.agents}

    def _infos(self) -> dict[str, Any]:
        masks = self._mask.astype(np.int8)
        return {a: {"action_mask": masks[self._rows[a]]} for a in self.agents}

    def _view(self, agent: str) -> dict[str, np.ndarray]:
        """What one agent sees: itself, its teammates, and the tasks."""
        seen, row = self._observation, self._rows[agent]
        others = [other for other in self._rows.values() if other != row]
        visible = seen.sees_agents[row, others][:, None]
        teammates = np.where(visible, seen.agents[others], 0)[:, seen.public]
        exists = np.asarray(seen.exists & seen.sees_tasks[row])
        return {
            "self": np.asarray(seen.agents[row]),
            "others": teammates.astype(np.float32),
            "present": np.asarray(seen.present[others] & visible[:, 0], np.int8),
            "tasks": np.where(exists[:, None], seen.tasks, 0).astype(np.float32),
            "exists": exists.astype(np.int8),
            "action_mask": self._mask[row].astype(np.int8),
        }

    def _space(self, agent: str) -> spaces.Dict:
        flags = ("present", "exists", "action_mask")
        return spaces.Dict(
            {
                # MultiBinary refuses to be empty, as `present` is for one agent.
                name: spaces.Box(0, 1, array.shape, np.int8)
                if name in flags
                else spaces.Box(-np.inf, np.inf, array.shape, np.float32)
                for name, array in self._view(agent).items()
            }
        )

    def _begin(self) -> None:
        self._key, self._state, seen = _reset(self._game, self._key)
        self._observation, self._mask = as_numpy(seen)


class CheckedTurns(BaseWrapper):
    """Refuses what is not offered when an agent acts, not when all of them have."""

    def __init__(self, env: AECEnv, parallel: GameParallelEnv) -> None:
        super().__init__(env)
        self._parallel = parallel

    def step(self, action: Any) -> None:
        agent = self.agent_selection
        over = self.terminations[agent] or self.truncations[agent]
        super().step(None if over else self._parallel.checked_action(agent, action))


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
