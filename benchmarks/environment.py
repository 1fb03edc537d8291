"""Environment steps per second with a random policy, and how long compiling takes.

    python benchmarks/environment.py [--setup wildfire-3x3-S3] [--games 1 64 1024 8192]

All rules are compiled in, whatever the setup switches off; games reset themselves; all
of every observation is computed (a checksum of it is part of the result).
"""

import argparse
import os
import platform
import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp

from plato.domains.setups import load_setup
from plato.domains.wildfire.game import Wildfire
from plato.game import Observation, step_and_reset
from plato.policies.rules import RulePolicy, uniform

POLICY = RulePolicy(uniform)
REFERENCE = {1: 66, 64: 5_600, 1024: 19_500}
"""Steps per second of the reference environment (PyTorch, one 2.8 GHz core)."""


@partial(jax.jit, static_argnames=("games", "steps"))
def play(game: Wildfire, key: jax.Array, games: int, steps: int) -> jax.Array:
    """Plays many games and returns a number that depends on all that was computed."""
    total = jax.vmap(partial(play_one, game, steps))(jax.random.split(key, games))
    return total.sum()


def play_one(game: Wildfire, steps: int, key: jax.Array) -> jax.Array:
    def turn(carry, time):
        state, observation = carry
        key_act, key_step = jax.random.split(jax.random.fold_in(key, time))
        actions, _ = POLICY.act(key_act, observation, None)
        result = step_and_reset(game, key_step, state, actions)
        seen = result.outcome.reward.sum() + checksum(result.observation)
        return (result.state, result.observation), seen

    _, seen = jax.lax.scan(turn, game.reset(key), jnp.arange(steps))
    return seen.sum()


def checksum(observation: Observation) -> jax.Array:
    return sum(
        (leaf.sum(dtype=jnp.float32) for leaf in jax.tree.leaves(observation)),
        start=jnp.zeros(()),
    )


def measure(game: Wildfire, games: int, seconds: float) -> tuple[float, float]:
    """Steps per second and seconds to compile."""
    steps, rate, compiling = 8, 0.0, None
    while True:
        begin = time.perf_counter()
        play(game, jax.random.key(0), games, steps).block_until_ready()
        first = time.perf_counter() - begin
        begin = time.perf_counter()
        play(game, jax.random.key(1), games, steps).block_until_ready()
        took = time.perf_counter() - begin
        compiling = first - took if compiling is None else compiling
        rate = max(rate, games * steps / took)
        if took >= seconds:
            return rate, compiling
        steps = max(2 * steps, int(1.2 * rate * seconds / games))


def machine() -> str:
    device = jax.devices()[0]
    if device.platform != "cpu":
        return device.device_kind
    names = [
        line.split(":", 1)[1].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--setup", default="wildfire-3x3-S3")
    parser.add_argument("--games", type=int, nargs="+", default=[1, 64, 1024, 8192])
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args()
    game = Wildfire.from_config(load_setup(options.setup).config)
    print(f"{options.setup}, random policy, {machine()}, jax {jax.__version__}\n")
    print("| games | steps/s | compile | against the reference |")
    print("|---:|---:|---:|---:|")
    for games in options.games:
        rate, compiling = measure(game, games, options.seconds)
        ratio = f"{rate / REFERENCE[games]:,.0f}×" if games in REFERENCE else "–"
        print(f"| {games:,} | {rate:,.0f} | {compiling:.1f} s | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
