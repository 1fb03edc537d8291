"""Replays recorded transitions of the reference environment through our dynamics.

A recording holds a configuration, the noise and the actions of every step, and what the
reference made of them. Its games are replayed side by side with the recorded noise, and
everything it recorded is compared exactly.
"""

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from plato.configuration import from_mapping
from plato.domains.wildfire import dynamics
from plato.domains.wildfire.config import WildfireConfig
from plato.domains.wildfire.dynamics import WildfireNoise, WildfireState
from plato.domains.wildfire.game import Wildfire
from plato.errors import PlatoError
from plato.game import NOOP

REWARD_TOLERANCE = 1e-6
"""Relative; the logarithm of the termination reward differs between libraries."""


@dataclass(frozen=True)
class Trace:
    """One recording, as far as its form is known to be right."""

    path: Path
    config: WildfireConfig
    games: int
    initial: dict[str, Any]
    steps: Sequence[dict[str, Any]]


@dataclass(frozen=True)
class Verdict:
    """How far a recording was followed, and where, if anywhere, we differ from it."""

    path: Path
    transitions: int
    difference: str | None


def read_trace(path: Path) -> Trace:
    """Reads a recording (JSON, gzipped or not)."""
    try:
        raw = path.read_bytes()
        text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
        data = json.loads(text)
    except OSError as error:
        reason = error.strerror or str(error)
        raise PlatoError(f"{path}: cannot be read ({reason}).") from None
    except (EOFError, zlib.error, ValueError):
        raise PlatoError(
            f"{path}: is cut short or damaged; get a whole copy of the recording."
        ) from None
    try:
        config = from_mapping(WildfireConfig, data["config"])
        trace = Trace(path, config, data["games"], data["initial"], data["steps"])
        _check_form(trace)
    except PlatoError as error:
        raise PlatoError(f"{path}: {error}") from None
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise PlatoError(
            f"{path}: is not a wildfire recording, or not a whole one ({error!r})."
        ) from None
    return trace


def replay(trace: Trace) -> Verdict:
    """Follows a recording to its end, or to the first difference."""
    names = [f"firefighter_{n + 1}" for n in range(len(trace.config.agent.agents))]
    # Spare rows make few shapes of many recordings, and change nothing.
    game = Wildfire.from_config(
        trace.config,
        agents=_power_of_two(len(names)),
        tasks=_power_of_two(len(trace.config.fire_cells)),
    )
    start = dynamics.initial_state(game.rules)
    state = jax.tree.map(lambda leaf: np.stack([leaf] * trace.games), start)
    view = partial(_as_recorded, trace.config, names)
    moment = view(game, state)
    for g in range(trace.games):
        difference = _first_difference(_of_game(trace.initial, g), moment[g])
        if difference:
            return Verdict(trace.path, 0, f"at the start, game {g}: {difference}")
    checked = 0
    for t, step in enumerate(trace.steps):
        actions, noise = _inputs(trace.config, game, step, f"{trace.path}: step {t}")
        state, outcome = _transitions(game, state, actions, noise)
        moment = view(game, state)
        outcome = jax.device_get(outcome)
        for g in range(trace.games):
            if step["dead_before"][g]:
                continue  # the reference goes on stepping games that are over
            ours = moment[g] | {
                "rewards": outcome.reward[g, : len(names)].tolist(),
                "terminated": bool(outcome.terminated[g]),
                "burnouts": int(outcome.events["burnouts"][g]),
                "putouts": int(outcome.events["putouts"][g]),
            }
            difference = _first_difference(_of_game(step, g), ours)
            if difference:
                where = f"after step {t}, game {g}: {difference}"
                return Verdict(trace.path, checked, where)
            checked += 1
    return Verdict(trace.path, checked, None)


@jax.jit
def _transitions(game: Wildfire, states: WildfireState, actions, noise):
    return jax.vmap(game.transition)(states, actions, noise)


@jax.jit
def _offers(game: Wildfire, states: WildfireState):
    return jax.vmap(partial(dynamics.offered, game.rules))(states)


def _inputs(
    config: WildfireConfig, game: Wildfire, step: dict[str, Any], where: str
) -> tuple[np.ndarray, WildfireNoise]:
    """The recorded actions and noise of a step, laid out as the dynamics take them."""
    agents, tasks, _ = game.capacity
    rows = {cell: row for row, cell in enumerate(config.fire_cells)}
    games = len(step["actions"])
    actions = np.full((games, agents), NOOP, np.int32)
    for g, row in enumerate(step["actions"]):
        for n, cell in enumerate(row):
            if cell is None:
                continue
            if tuple(cell) not in rows:
                raise PlatoError(
                    f"{where}: agent {n} fights cell {cell}, which can never burn."
                )
            actions[g, n] = 1 + rows[tuple(cell)]
    y, x = np.asarray(config.fire_cells, int).reshape(-1, 2).T
    field = np.ones((games, tasks, dynamics.FIELD_NUMBERS), np.float32)
    field[:, : len(y)] = np.moveaxis(
        np.asarray(step["noise"]["field"], np.float32)[:, :, y, x], 1, 2
    )
    agent = np.ones((games, agents, dynamics.AGENT_NUMBERS), np.float32)
    agent[:, : len(config.agent.agents)] = np.moveaxis(
        np.asarray(step["noise"]["agent"], np.float32), 1, 2
    )
    return actions, WildfireNoise(jnp.asarray(field), jnp.asarray(agent))


def _as_recorded(
    config: WildfireConfig, names: list[str], game: Wildfire, states: WildfireState
) -> list[dict[str, Any]]:
    """Our states, offers and observations in the form the reference records them."""
    offers = np.asarray(_offers(game, states))
    states = jax.device_get(states)
    return [
        _game_as_recorded(
            config, names, jax.tree.map(lambda leaf, g=g: leaf[g], states), offers[g]
        )
        for g in range(len(offers))
    ]


def _game_as_recorded(
    config: WildfireConfig, names: list[str], state: WildfireState, offers: np.ndarray
) -> dict[str, Any]:
    cells = config.fire_cells
    y, x = np.asarray(cells, int).reshape(-1, 2).T
    n = len(names)

    def on_grid(values: np.ndarray) -> list[list[int]]:
        grid = np.zeros((config.grid_height, config.grid_width), int)
        grid[y, x] = values[: len(cells)]
        return grid.tolist()

    size = np.asarray(config.fire.fire_types)[y, x]
    burning = np.asarray(state.burning)[: len(cells)]
    fires = np.where(state.over, 0, np.where(burning, size, -size))
    suppressant = np.asarray(state.suppressant)[:n]
    tasks = [
        [*cell, int(s), int(i)]
        for cell, s, i, lit in zip(cells, size, state.intensity, burning, strict=False)
        if lit
    ]
    return {
        "state": {
            "fires": on_grid(fires),
            "intensity": on_grid(np.asarray(state.intensity)),
            "fuel": on_grid(np.asarray(state.fuel)),
            "suppressants": suppressant.tolist(),
            "capacity": np.asarray(state.capacity)[:n].tolist(),
            "equipment": np.asarray(state.equipment)[:n].tolist(),
        },
        "available": [
            [list(cells[row]) for row in np.flatnonzero(offers[i])] for i in range(n)
        ],
        "observations": {
            name: {
                "self": _self_row(config, suppressant, i),
                "others": [
                    _teammate_row(config, suppressant, j) for j in range(n) if j != i
                ],
                "tasks": tasks,
            }
            for i, name in enumerate(names)
        },
    }


def _self_row(config: WildfireConfig, suppressant: np.ndarray, n: int) -> list[float]:
    power = config.agent.fire_reduction_power[n]
    return [*config.agent.agents[n], power, float(suppressant[n])]


def _teammate_row(
    config: WildfireConfig, suppressant: np.ndarray, n: int
) -> list[float]:
    y, x, power, carried = _self_row(config, suppressant, n)
    seen = [y, x]
    if config.observe_other_power:
        seen.append(power)
    if config.observe_other_suppressant:
        seen.append(carried)
    return seen


def _of_game(moment: dict[str, Any], g: int) -> dict[str, Any]:
    """What a recorded moment says of one game."""
    single = {
        name: moment[name][g]
        for name in ("available", "rewards", "terminated", "burnouts", "putouts")
        if name in moment
    }
    single["state"] = {name: value[g] for name, value in moment["state"].items()}
    if moment.get("observations"):
        single["observations"] = {
            agent: {name: rows[g] for name, rows in seen.items()}
            for agent, seen in moment["observations"].items()
        }
    return single


def _first_difference(theirs: Any, ours: Any, path: str = "") -> str | None:
    """Says in words where two nested values first differ; None where they agree."""
    for where, expected, found in _leaves(theirs, ours, path):
        tolerance = REWARD_TOLERANCE if where.startswith("rewards") else 0.0
        if not _same(expected, found, tolerance):
            return f"{where} is {found!r} here and {expected!r} in the recording"
    return None


def _same(expected: Any, found: Any, tolerance: float) -> bool:
    if isinstance(expected, (list, dict)) or expected is None or found is None:
        return expected == found
    return abs(expected - found) <= tolerance * abs(expected)


def _leaves(theirs: Any, ours: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(theirs, dict):
        for name, value in theirs.items():
            below = f"{path}.{name}" if path else name
            yield from _leaves(value, ours.get(name), below)
    elif (
        isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours)
    ):
        for i, (a, b) in enumerate(zip(theirs, ours, strict=True)):
            yield from _leaves(a, b, f"{path}[{i}]")
    else:
        yield path, theirs, ours


def _check_form(trace: Trace) -> None:
    """Touches what a replay will read, so that a partial file is refused up front."""
    height, width = trace.config.grid_height, trace.config.grid_width
    agents = len(trace.config.agent.agents)
    for t, step in enumerate(trace.steps):
        for name, shape in (
            ("field", (trace.games, dynamics.FIELD_NUMBERS, height, width)),
            ("agent", (trace.games, dynamics.AGENT_NUMBERS, agents)),
        ):
            if np.shape(step["noise"][name]) != shape:
                raise PlatoError(
                    f"steps[{t}].noise.{name} has the shape "
                    f"{np.shape(step['noise'][name])}, not {shape}."
                )
        for name in ("actions", "dead_before", "available", "rewards", "terminated"):
            if len(step[name]) != trace.games:
                raise PlatoError(
                    f"steps[{t}].{name} has {len(step[name])} entries for "
                    f"{trace.games} games."
                )
        for g, actions in enumerate(step["actions"]):
            if len(actions) != agents:
                raise PlatoError(
                    f"steps[{t}].actions[{g}] has {len(actions)} entries for "
                    f"{agents} agents."
                )
    _of_game(trace.initial, 0)


def _power_of_two(n: int) -> int:
    return 1 << max(n - 1, 0).bit_length()
