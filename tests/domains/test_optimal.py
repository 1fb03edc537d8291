"""The exact optimum: wildfire's factors against its dynamics, and known values."""

import re
from dataclasses import replace
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import plato
from command_line import start_plato
from known_optima import OPTIMA
from plato.domains.setups import load_setup
from plato.domains.wildfire import dynamics
from plato.domains.wildfire.dynamics import WildfireState
from plato.domains.wildfire.game import Wildfire
from plato.domains.wildfire.optimum.known import known_optimum
from plato.domains.wildfire.optimum.model import Model, model_of, size_of
from plato.domains.wildfire.optimum.policy import (
    load_optimal,
    policy_of,
    save_optimal,
    solve_exactly,
)
from plato.errors import PlatoError
from plato.exact.induction import Solution
from strategies import CAPACITY, wildfire_configs


@cache
def solution(setup: str):
    return solve_exactly(load_setup(setup).config)


@pytest.mark.parametrize("setup", OPTIMA)
def test_known_optima(setup):
    assert float(solution(setup).value) == pytest.approx(OPTIMA[setup], abs=0.01)
    assert known_optimum(load_setup(setup)) == pytest.approx(OPTIMA[setup], abs=0.01)


# The larger ones take minutes, or a GPU: `plato solve NAME`.
SMALL = ("2x3-S3-uneven", "3x3-S3-uneven", "3x3-S3-transfer")


def test_shipped_optima_are_what_the_solver_finds(tmp_path):
    """In a process of its own, compiled as users do: it runs for long."""
    names = [f"wildfire-{name}" for name in SMALL]
    printed = start_plato(tmp_path, "solve", *names).stdout
    found = re.findall(r"optimal expected return ([\d.]+)", printed)
    known = [known_optimum(load_setup(name)) for name in names]
    assert list(map(float, found)) == pytest.approx(known, abs=0.01)


def test_an_optimum_is_known_by_what_a_setup_says():
    assert known_optimum(load_setup("wildfire-4x4-S2")) == 269.34
    shipped = load_setup("wildfire-2x3-S0")
    other = replace(shipped, content=replace(shipped.config, max_steps=3))
    assert known_optimum(other) is None
    assert known_optimum(replace(shipped, name="mine")) is None


@pytest.mark.parametrize("setup", ["wildfire-2x3-S1", "wildfire-3x3-S3"])
def test_the_policy_earns_what_its_value_says(setup):
    solved = solution(setup)
    returns = plato.evaluate(solved, setup, episodes=10_000).metrics["return"]
    error = returns.std() / len(returns) ** 0.5
    assert abs(returns.mean() - float(solved.value)) < 3 * error


DRAWS = 4_000


@partial(jax.jit, static_argnames="draws")
def outcomes(rules, state, actions, key, draws):
    """The same step many times over, each with its own noise."""

    def once(key):
        noise = dynamics.draw_noise(key, *list(CAPACITY.values()))
        return dynamics.transition(rules, state, actions, noise)

    return jax.vmap(once)(jax.random.split(key, draws))


@given(wildfire_configs(rows=1, columns=2, agents=2), st.integers(0, 2**32 - 1))
@settings(
    max_examples=30,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
def test_factors_move_as_the_dynamics_do(config, seed):
    """From a random state, a random joint action: the expectation of random values."""
    assume(config.fire_cells and size_of(config).states < 200_000)
    model = model_of(config)
    process = model.process
    draws = np.random.default_rng(seed)
    values = draws.normal(size=process.shape).astype(np.float32)
    place = tuple(draws.integers(0, n) for n in process.shape)
    able = [
        all(
            np.isfinite(factor.reward[mode, i])
            for factor, mode, i in zip(process.factors, action, place, strict=True)
        )
        for action in process.actions
    ]
    chosen = draws.choice(np.flatnonzero(able))
    expected = one_step(model, values, place, chosen)

    rules = Wildfire.from_config(config, **CAPACITY).rules
    state = state_of(model, rules, place)
    assume(not bool(dynamics.end(rules, state)[0].over))
    spare = CAPACITY["agents"] - len(model.agents)
    actions = jnp.pad(jnp.asarray(model.actions[chosen]), (0, spare))
    reached, outcome = outcomes(rules, state, actions, jax.random.key(seed), DRAWS)

    nothing = np.zeros((1, process.states), np.uint8)
    look = policy_of(model, Solution(0.0, nothing))
    ahead = values.reshape(-1)[np.asarray(jax.vmap(look.index)(reached))]
    team = np.asarray(outcome.reward)[:, : len(model.agents)].mean(axis=1)
    seen = team + np.where(np.asarray(outcome.terminated), 0, ahead)
    error = seen.std() / DRAWS**0.5
    assert abs(seen.mean() - expected) <= 5 * error + 1e-3


def one_step(model: Model, values, place, action) -> float:
    """Reward and expected value of what follows, by explicit joint probabilities."""
    process = model.process
    over = np.broadcast_to(process.over, process.shape)
    ahead = np.asarray(process.settle(jnp.where(over, 0.0, values)))
    ends = np.asarray(process.settle(jnp.asarray(over, jnp.float32)))
    reward, row = 0.0, np.ones(1)
    for factor, mode, i in zip(
        process.factors, process.actions[action], place, strict=True
    ):
        np.testing.assert_allclose(factor.transition[mode, i].sum(), 1, atol=1e-6)
        reward += factor.reward[mode, i]
        row = np.kron(row, factor.transition[mode, i])
    total = reward + row @ ahead.reshape(-1)
    if process.bonus is not None:
        bonus = np.broadcast_to(process.bonus, process.shape)[place]
        total += bonus * (row @ ends.reshape(-1))
    return float(total)


def state_of(model: Model, rules, place) -> WildfireState:
    """The game's state at a place of the table."""
    blank = dynamics.initial_state(rules)
    cells = [states[i] for states, i in zip(model.cells, place, strict=False)]
    places = place[len(cells) :]
    agents = [states[i] for states, i in zip(model.agents, places, strict=True)]
    burnt_out = int(rules.burnt_out)

    def rows(like, values):
        return like.at[: len(values)].set(jnp.asarray(values, like.dtype))

    intensity = [cell.intensity for cell in cells]
    fuel = [cell.fuel for cell in cells]
    return replace(
        blank,
        burning=rows(blank.burning, [0 < i < burnt_out for i in intensity]),
        intensity=rows(blank.intensity, intensity),
        fuel=rows(blank.fuel, fuel) if model.knows_fuel else blank.fuel,
        suppressant=rows(blank.suppressant, [a.suppressant for a in agents]),
        capacity=rows(blank.capacity, [a.capacity for a in agents]),
        equipment=rows(blank.equipment, [a.equipment for a in agents]),
        burnouts=jnp.asarray(sum(i == burnt_out for i in intensity), jnp.int32),
    )


def test_a_solution_is_kept_and_read_back(tmp_path):
    config = load_setup("wildfire-2x3-S3").config
    solved = solve_exactly(config)
    path = tmp_path / "best.safetensors"
    save_optimal(path, solved, config)
    back = load_optimal(path, config)
    jax.tree.map(np.testing.assert_array_equal, solved, back)
    with pytest.raises(PlatoError, match="solves another configuration"):
        load_optimal(path, load_setup("wildfire-2x3-S2").config)


def test_what_is_too_large_is_refused_before_it_is_built():
    with pytest.raises(PlatoError, match=r"1\.14e\+07 states and 900 joint actions"):
        solve_exactly(load_setup("wildfire-4x4-S3").config, memory=10**9)


def test_more_rows_and_the_papers_noise_change_nothing_for_the_optimal_team():
    setup = load_setup("wildfire-2x3-S3")
    solved = solution("wildfire-2x3-S3")
    usual = plato.evaluate(solved, setup, episodes=20)
    larger = Wildfire.from_config(setup.config, agents=5, tasks=7)
    padded = plato.evaluate(solved, larger, episodes=20)
    np.testing.assert_array_equal(usual.metrics["return"], padded.metrics["return"])
    fixed = plato.evaluate(solved, setup, episodes=2, noise="paper")
    assert len(set(fixed.metrics["return"])) == 1  # it draws nothing itself
