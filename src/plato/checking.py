"""A checker for new domains: `check_game` plays a game and says what it breaks.

It plays random and idle episodes through the public interface and holds every moment
against what the rest of the package relies on.
"""

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from plato.errors import PlatoError
from plato.game import NO_ARRAYS, NOOP, Game, Observation, Outcome, step_and_reset
from plato.policies.rules import RulePolicy, uniform
from plato.tensors import numbers


def check_game(game: Game[Any, Any], *, steps: int = 200, seed: int = 0) -> None:
    """Raises a `PlatoError` that lists every promise of `Game` this game breaks."""
    problems = list(dict.fromkeys(_problems(game, steps, seed)))
    if problems:
        raise PlatoError(f"{type(game).__name__}: " + "\n".join(problems))


def _problems(game: Game[Any, Any], steps: int, seed: int) -> Iterator[str]:
    key = jax.random.key(seed)
    for check in (_check_forms, _check_purity):
        wrong = list(check(game, key))
        yield from wrong
        if wrong:
            return  # nothing that follows could be trusted
    yield from _check_mapping(game, key)
    yield from _check_compilations(game, key)
    yield from _check_episodes(game, key, steps)


def _check_forms(game: Game[Any, Any], key: Any) -> Iterator[str]:
    """Shapes and types, found by tracing alone."""
    agents = game.capacity.agents
    nobody = jnp.zeros(agents, jnp.int32)
    if not jax.tree.leaves(game):
        yield NO_ARRAYS
    for name, shape in (
        ("roster", (agents,)),
        ("within_reach", (agents, game.capacity.tasks)),
    ):
        found = jax.eval_shape(lambda game, name=name: getattr(game, name), game)
        if found.shape != shape:
            yield f"{name} has the shape {found.shape}, not {shape}."
        if found.dtype != bool:
            yield f"{name} is made of {found.dtype}, not of bool."
    state, first = jax.eval_shape(game.reset, key)
    following, seen, outcome = jax.eval_shape(game.step, key, state, nobody)
    yield from _observation_forms(game, first, "reset")
    yield from _observation_forms(game, seen, "step")
    yield from _outcome_forms(outcome, agents)
    before, after = _signature(state), _signature(following)
    if before != after:
        changed = [
            f"{name} ({before.get(name)} to {after.get(name)})"
            for name in before.keys() | after.keys()
            if before.get(name) != after.get(name)
        ]
        yield (
            f"transition changes the form of the state, so it cannot be scanned: "
            f"{', '.join(sorted(changed))}."
        )


def _observation_forms(
    game: Game[Any, Any], seen: Observation, where: str
) -> Iterator[str]:
    agents, tasks, actions = game.capacity
    expected: dict[str, tuple[tuple[int | None, ...], Any]] = {
        "agents": ((agents, None), jnp.floating),
        "roster": ((agents,), jnp.bool_),
        "present": ((agents,), jnp.bool_),
        "tasks": ((tasks, None), jnp.floating),
        "exists": ((tasks,), jnp.bool_),
        "public": ((seen.agents.shape[-1],), jnp.bool_),
        "sees_agents": ((agents, agents), jnp.bool_),
        "sees_tasks": ((agents, tasks), jnp.bool_),
        "options": ((agents, tasks, actions), jnp.bool_),
    }
    for name, (shape, kind) in expected.items():
        array = getattr(seen, name)
        fits = len(array.shape) == len(shape) and all(
            want in (None, have) for want, have in zip(shape, array.shape, strict=True)
        )
        if not fits:
            want = tuple("any" if size is None else size for size in shape)
            yield f"{where}: observation.{name} has shape {array.shape}, not {want}."
        if not jnp.issubdtype(array.dtype, kind):
            yield f"{where}: observation.{name} is {array.dtype}, not {kind.__name__}."


def _outcome_forms(outcome: Outcome, agents: int) -> Iterator[str]:
    expected: dict[str, tuple[tuple[int, ...], Any]] = {
        "reward": ((agents,), jnp.floating),
        "terminated": ((), jnp.bool_),
        "truncated": ((), jnp.bool_),
    }
    for name, (shape, kind) in expected.items():
        array = getattr(outcome, name)
        if array.shape != shape or not jnp.issubdtype(array.dtype, kind):
            yield (
                f"outcome.{name} is {array.dtype} of shape {array.shape}, not "
                f"{kind.__name__} of shape {shape}."
            )
    for name, array in outcome.events.items():
        if array.shape != () or not jnp.issubdtype(array.dtype, jnp.integer):
            yield f"outcome.events[{name!r}] must be one whole number."


def _first_step(game: Game[Any, Any], key: Any) -> Any:
    state, _ = game.reset(key)
    nobody = jnp.zeros(game.capacity.agents, jnp.int32)
    return game.step(key, state, nobody)


def _check_purity(game: Game[Any, Any], key: Any) -> Iterator[str]:
    """The same key gives the same step whenever it is asked, and changes nothing."""
    kept = _copies(game)
    # Each `jit` of a new function traces anew: Python's own randomness shows up.
    fresh = [jax.jit(lambda key: _first_step(game, key)) for _ in range(2)]
    once, again = (_copies(step(key)) for step in fresh)
    if not _equal(once, again):
        yield "reset and step give different results for the same key."
    if not _equal(kept, _copies(game)):
        yield "a step changes the game itself; a game must hold constants only."


def _check_mapping(game: Game[Any, Any], key: Any) -> Iterator[str]:
    """Games mapped together behave as they do alone."""
    keys = jax.random.split(key, 3)
    together = jax.device_get(
        jax.jit(jax.vmap(lambda key: _first_step(game, key)))(keys)
    )
    alone = jax.jit(lambda key: _first_step(game, key))
    for i in range(len(keys)):
        part = jax.tree.map(lambda leaf, i=i: leaf[i], together)
        if not _equal(_copies(alone(keys[i])), _copies(part), tolerance=1e-5):
            yield "step gives something else under jax.vmap than on its own."
            return


def _check_compilations(game: Game[Any, Any], key: Any) -> Iterator[str]:
    """One compilation serves every step, and every game of this form."""
    traces = 0

    @jax.jit
    def step(game: Game[Any, Any], key: Any, state: Any, actions: Any) -> Any:
        nonlocal traces
        traces += 1
        return game.step(key, state, actions)

    state, _ = jax.jit(lambda key: game.reset(key))(key)
    nobody = jnp.zeros(game.capacity.agents, jnp.int32)
    twin = jax.tree.map(
        lambda leaf: leaf + 0 if eqx.is_inexact_array(leaf) else leaf, game
    )
    for i in range(4):
        state, _, _ = step(game if i % 2 else twin, key, state, nobody)
    if traces > 1:
        yield (
            f"step was compiled {traces} times in 4 steps; keep shapes, types and "
            f"static fields the same, numbers in arrays, and their types explicit "
            f"(a bare Python number makes a weakly typed array)."
        )


def _check_episodes(game: Game[Any, Any], key: Any, steps: int) -> Iterator[str]:
    """Every moment of random play and of idle play keeps the rules of the sets."""
    policy = RulePolicy(uniform)

    @jax.jit
    def turn(key: Any, state: Any, seen: Observation, idle: Any) -> Any:
        key_act, key_step = jax.random.split(key)
        actions, _ = policy.act(key_act, seen, None)
        actions = jnp.where(idle, NOOP, actions)
        return step_and_reset(game, key_step, state, actions)

    always = np.asarray(game.roster), np.asarray(game.within_reach)
    horizon = int(game.horizon)
    for idle in (False, True):
        state, seen = jax.jit(lambda key: game.reset(key))(key)
        age = 0
        for t in range(steps):
            yield from _moment_problems(jax.device_get(seen), *always)
            result = turn(jax.random.fold_in(key, t), state, seen, idle)
            state, seen = result.state, result.observation
            outcome: Outcome = jax.device_get(result.outcome)
            ended = outcome.terminated or outcome.truncated
            age = 0 if ended else age + 1
            yield from _outcome_problems(outcome, always[0])
            yield from _moment_problems(
                jax.device_get(result.final_observation), *always
            )
            if age >= horizon:
                yield f"an episode goes on after {horizon} steps, its horizon."
                break


def _moment_problems(
    seen: Observation, roster: np.ndarray, reach: np.ndarray
) -> Iterator[str]:
    if (seen.roster != roster).any():
        yield "observation.roster is not the game's roster."
    if (seen.present & ~roster).any():
        yield "an agent is present that is not on the roster."
    if (seen.options & ~seen.present[:, None, None]).any():
        yield "an agent that is not present has options; it can only have NOOP."
    if (seen.options & ~seen.exists[None, :, None]).any():
        yield "an option points at a task that does not exist."
    if (seen.options & ~seen.sees_tasks[:, :, None]).any():
        yield "an option points at a task that its agent does not see."
    if (seen.options & ~reach[:, :, None]).any():
        yield "an option points at a task that is not within_reach of its agent."
    if not np.isfinite(seen.agents[roster]).all():
        yield "a feature of an agent is not a finite number."
    if not np.isfinite(seen.tasks[seen.exists]).all():
        yield "a feature of an existing task is not a finite number."
    if not np.diagonal(seen.sees_agents)[seen.present].all():
        yield "a present agent does not see itself."


def _outcome_problems(outcome: Outcome, roster: np.ndarray) -> Iterator[str]:
    if not np.isfinite(outcome.reward).all():
        yield "a reward is not a finite number."
    if outcome.reward[~roster].any():
        yield "a row that is not on the roster gets a reward."
    if outcome.terminated and outcome.truncated:
        yield "a step is terminated and truncated at once; termination comes first."
    if any(number < 0 for number in outcome.events.values()):
        yield "an event was counted a negative number of times."


def _signature(tree: Any) -> dict[str, str]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {
        jax.tree_util.keystr(path): f"{leaf.dtype}{list(leaf.shape)}"
        for path, leaf in leaves
    }


def _copies(tree: Any) -> list[np.ndarray]:
    return [np.array(numbers(leaf)) for leaf in jax.tree.leaves(tree)]


def _equal(a: list[np.ndarray], b: list[np.ndarray], tolerance: float = 0.0) -> bool:
    return len(a) == len(b) and all(
        x.dtype == y.dtype
        and x.shape == y.shape
        and np.allclose(x, y, rtol=tolerance, atol=tolerance, equal_nan=True)
        for x, y in zip(a, b, strict=True)
    )
