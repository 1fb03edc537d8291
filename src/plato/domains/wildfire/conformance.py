"""Replays recorded transitions of the reference environment through our dynamics.

A recording holds a configuration, the noise and the actions of every step, and what the
reference made of them. Its games are replayed side by side with the recorded noise, and
everything it recorded is compared exactly.
"""

import gzip
import json
import zlib
from collections.abc import Iterator
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
from plato.game import NOOP, Observation, power_of_two

LOGARITHM_TOLERANCE = 1e-6
"""Relative, for the reward of a step that ends a game: logarithms differ by library."""
CELL_STATE = ("fires", "intensity", "fuel")
AGENT_STATE = ("suppressants", "capacity", "equipment")


@dataclass(frozen=True)
class Trace:
    """One recording whose form is known to be right."""

    path: Path
    config: WildfireConfig
    games: int
    initial: dict[str, Any]
    steps: list[dict[str, Any]]

    @property
    def agents(self) -> int:
        return len(self.config.agent.agents)


@dataclass(frozen=True)
class Verdict:
    """How far a recording was followed, and where, if anywhere, we differ from it."""

    transitions: int
    difference: str | None


def read_trace(path: Path) -> Trace:
    """Reads a recording (JSON, gzipped or not) and checks its form."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise PlatoError(f"{path}: cannot be read ({error.strerror}).") from None
    try:
        text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
        data = json.loads(text)
    except (EOFError, OSError, zlib.error, ValueError, RecursionError):
        raise PlatoError(
            f"{path}: is cut short or damaged; get a whole copy of the recording."
        ) from None
    try:
        return _checked(path, data)
    except PlatoError as error:
        raise PlatoError(f"{path}: {error}") from None


def replay(trace: Trace) -> Verdict:
    """Follows a recording to its end, or to the first difference."""
    # Spare rows make few shapes of many recordings, and change nothing.
    game = Wildfire.from_config(
        trace.config,
        agents=power_of_two(trace.agents),
        tasks=power_of_two(len(trace.config.fire_cells)),
    )
    start = dynamics.initial_state(game.rules)
    states = jax.tree.map(lambda leaf: jnp.stack([leaf] * trace.games), start)
    moments = _moments(trace, game, states)
    for g, ours in enumerate(moments):
        difference = _first_difference(_of_game(trace.initial, g), ours)
        if difference:
            return Verdict(0, f"at the start, game {g}: {difference}")
    checked = 0
    for t, step in enumerate(trace.steps):
        over_before = np.asarray(states.over)
        actions, noise = _inputs(trace, game, step)
        states, outcome = _transitions(game, states, actions, noise)
        moments = _moments(trace, game, states)
        outcome = jax.device_get(outcome)
        for g in range(trace.games):
            ours = moments[g] | {
                "dead_before": bool(over_before[g]),
                "rewards": outcome.reward[g, : trace.agents].tolist(),
                "terminated": bool(outcome.terminated[g]),
                "burnouts": int(outcome.events["burnouts"][g]),
                "putouts": int(outcome.events["putouts"][g]),
            }
            theirs = _of_game(step, g)
            if theirs["dead_before"] and ours["dead_before"]:
                continue  # the reference goes on stepping games that are over
            difference = _first_difference(theirs, ours)
            if difference:
                return Verdict(checked, f"after step {t}, game {g}: {difference}")
            checked += 1
    return Verdict(checked, None)


@jax.jit
def _transitions(game: Wildfire, states: WildfireState, actions: Any, noise: Any):
    return jax.vmap(game.transition)(states, actions, noise)


@jax.jit
def _views(game: Wildfire, states: WildfireState):
    return jax.vmap(game.observe)(states), jax.vmap(
        partial(dynamics.offered, game.rules)
    )(states)


def _inputs(
    trace: Trace, game: Wildfire, step: dict[str, Any]
) -> tuple[np.ndarray, WildfireNoise]:
    """The recorded actions and noise of a step, laid out as the dynamics take them."""
    agents, tasks, _ = game.capacity
    cells = trace.config.fire_cells
    rows = {cell: row for row, cell in enumerate(cells)}
    actions = np.full((trace.games, agents), NOOP, np.int32)
    for g, row in enumerate(step["actions"]):
        for n, cell in enumerate(row):
            if cell is not None:
                actions[g, n] = 1 + rows[tuple(cell)]
    y, x = np.asarray(cells, int).reshape(-1, 2).T
    field = np.ones((trace.games, tasks, dynamics.FIELD_NUMBERS), np.float32)
    recorded = np.asarray(step["noise"]["field"], np.float32)
    field[:, : len(cells)] = np.moveaxis(recorded[:, :, y, x], 1, 2)
    agent = np.ones((trace.games, agents, dynamics.AGENT_NUMBERS), np.float32)
    recorded = np.asarray(step["noise"]["agent"], np.float32)
    agent[:, : trace.agents] = np.moveaxis(recorded, 1, 2)
    return actions, WildfireNoise(jnp.asarray(field), jnp.asarray(agent))


def _moments(
    trace: Trace, game: Wildfire, states: WildfireState
) -> list[dict[str, Any]]:
    """Our states, offers and observations in the form the reference records them."""
    seen, offers, states = jax.device_get((*_views(game, states), states))

    def of_game(tree: Any, g: int) -> Any:
        return jax.tree.map(lambda leaf: leaf[g], tree)

    return [
        {
            "state": _state_as_recorded(trace.config, of_game(states, g)),
            "available": _offers_as_recorded(trace, offers[g]),
            "observations": _seen_as_recorded(trace, game, of_game(seen, g)),
        }
        for g in range(trace.games)
    ]


def _state_as_recorded(
    config: WildfireConfig, state: WildfireState
) -> dict[str, list[Any]]:
    cells, agents = config.fire_cells, len(config.agent.agents)
    y, x = np.asarray(cells, int).reshape(-1, 2).T

    def on_grid(values: Any) -> list[list[int]]:
        grid = np.zeros((config.grid_height, config.grid_width), int)
        grid[y, x] = values[: len(cells)]
        return grid.tolist()

    size = np.asarray(config.fire.fire_types)[y, x]
    fires = np.where(state.burning[: len(cells)], size, -size)
    return {
        "fires": on_grid(np.where(state.over, 0, fires)),
        "intensity": on_grid(state.intensity),
        "fuel": on_grid(state.fuel),
        "suppressants": state.suppressant[:agents].tolist(),
        "capacity": state.capacity[:agents].tolist(),
        "equipment": state.equipment[:agents].tolist(),
    }


def _offers_as_recorded(trace: Trace, offers: np.ndarray) -> list[list[list[int]]]:
    cells = trace.config.fire_cells
    return [
        [list(cells[row]) for row in np.flatnonzero(offers[n])]
        for n in range(trace.agents)
    ]


def _seen_as_recorded(
    trace: Trace, game: Wildfire, seen: Observation
) -> dict[str, dict[str, Any]]:
    everyone = range(trace.agents)
    tasks = seen.tasks[seen.exists].tolist()
    return {
        game.agent_name(n): {
            "self": seen.agents[n].tolist(),
            "others": [
                seen.agents[j][seen.public].tolist() for j in everyone if j != n
            ],
            "tasks": tasks,
        }
        for n in everyone
    }


def _of_game(moment: dict[str, Any], g: int) -> dict[str, Any]:
    """What a recorded moment says of one game."""
    names = ("dead_before", "available", "rewards", "terminated", "burnouts", "putouts")
    single = {name: moment[name][g] for name in names if name in moment}
    single["state"] = {name: value[g] for name, value in moment["state"].items()}
    if moment.get("observations"):
        single["observations"] = {
            agent: {name: rows[g] for name, rows in seen.items()}
            for agent, seen in moment["observations"].items()
        }
    return single


def _first_difference(theirs: dict[str, Any], ours: dict[str, Any]) -> str | None:
    """Says in words where two moments first differ; None where they agree."""
    ends = theirs.get("terminated") is True
    for where, expected, found in _leaves(theirs, ours, ""):
        tolerance = LOGARITHM_TOLERANCE if ends and where.startswith("rewards") else 0.0
        if not _same(expected, found, tolerance):
            return f"{where} is {found!r} here and {expected!r} in the recording"
    return None


def _same(expected: Any, found: Any, tolerance: float) -> bool:
    numbers = isinstance(expected, (int, float)) and isinstance(found, (int, float))
    if not numbers:
        return expected == found
    return abs(expected - found) <= tolerance * abs(expected)


def _leaves(theirs: Any, ours: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(theirs, dict) and isinstance(ours, dict):
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


def _checked(path: Path, data: Any) -> Trace:
    """A trace, if the data has all that a replay reads, in the right shapes."""
    for name, kind in (("config", dict), ("initial", dict), ("steps", list)):
        if not isinstance(data, dict) or not isinstance(data.get(name), kind):
            raise PlatoError(f"is not a wildfire recording: it has no {name}.")
    games, steps = data.get("games"), data["steps"]
    if type(games) is not int or games < 1:
        raise PlatoError(f"games must be a whole number from 1, not {games!r}.")
    if not steps:
        raise PlatoError("steps is empty; there is nothing to replay.")
    for t, step in enumerate(steps):
        _part(step, "state", f"steps[{t}]")
    config = from_mapping(WildfireConfig, data["config"], "config")
    trace = Trace(path, config, games, data["initial"], steps)
    _check_moment(trace, trace.initial, "initial")
    for t, step in enumerate(steps):
        _check_moment(trace, step, f"steps[{t}]")
        _check_step(trace, step, f"steps[{t}]")
    return trace


def _check_moment(trace: Trace, moment: Any, where: str) -> None:
    grid = (trace.games, trace.config.grid_height, trace.config.grid_width)
    team = (trace.games, trace.agents)
    state = _part(moment, "state", where)
    for name in CELL_STATE:
        _check_array(
            _part(state, name, f"{where}.state"), grid, f"{where}.state.{name}"
        )
    for name in AGENT_STATE:
        _check_array(
            _part(state, name, f"{where}.state"), team, f"{where}.state.{name}"
        )
    available = _part(moment, "available", where)
    if not _nested(available, team):
        raise PlatoError(f"{where}.available must hold a list for each game and agent.")
    seen = moment.get("observations")
    if seen is not None and not (
        isinstance(seen, dict)
        and all(
            isinstance(view, dict)
            and all(_nested(rows, team[:1]) for rows in view.values())
            for view in seen.values()
        )
    ):
        raise PlatoError(
            f"{where}.observations must hold rows for each agent and game."
        )


def _check_step(trace: Trace, step: Any, where: str) -> None:
    games, team = (trace.games,), (trace.games, trace.agents)
    noise = _part(step, "noise", where)
    cells = (trace.config.grid_height, trace.config.grid_width)
    for name, shape in (
        ("field", (trace.games, dynamics.FIELD_NUMBERS, *cells)),
        ("agent", (trace.games, dynamics.AGENT_NUMBERS, trace.agents)),
    ):
        numbers = _part(noise, name, f"{where}.noise")
        _check_array(numbers, shape, f"{where}.noise.{name}")
    for name, shape in (
        ("dead_before", games),
        ("terminated", games),
        ("burnouts", games),
        ("putouts", games),
        ("rewards", team),
    ):
        _check_array(_part(step, name, where), shape, f"{where}.{name}")
    actions = _part(step, "actions", where)
    if not _nested(actions, team):
        raise PlatoError(
            f"{where}.actions must hold one entry for each game and agent."
        )
    known = trace.config.fire_cells
    for g, row in enumerate(actions):
        for n, cell in enumerate(row):
            if cell is not None and not (
                isinstance(cell, list) and tuple(cell) in known
            ):
                raise PlatoError(
                    f"{where}.actions[{g}][{n}] is {cell!r}, neither null nor a cell "
                    f"[y, x] that can burn."
                )


def _part(data: Any, name: str, where: str) -> Any:
    if not isinstance(data, dict) or name not in data:
        raise PlatoError(f"{where}.{name} is missing; the recording is not whole.")
    return data[name]


def _nested(data: Any, shape: tuple[int, ...]) -> bool:
    """Whether lists are nested with these lengths, whatever they hold."""
    if not shape:
        return True
    return (
        isinstance(data, list)
        and len(data) == shape[0]
        and all(_nested(item, shape[1:]) for item in data)
    )


def _check_array(data: Any, shape: tuple[int, ...], where: str) -> None:
    try:
        array = np.asarray(data)
        wrong = array.shape != shape or array.dtype.kind not in "biuf"
    except ValueError:  # rows of different lengths
        wrong = True
    if wrong:
        sizes = " × ".join(map(str, shape))
        raise PlatoError(f"{where} must hold {sizes} numbers.")
