"""How the cost of a step grows with the grid and the team.

    python benchmarks/scaling.py

Every cell can burn; agents grow with the cells. The last column is the time of a step
per agent and task: where it does not grow, the cost is within agents × tasks.
"""

import argparse
import time
from functools import partial

import jax
import jax.numpy as jnp

from environment import machine, play_one
from large_grid import large_config
from plato.domains.wildfire.game import Wildfire

SIZES = ((10, 5), (20, 20), (50, 125), (100, 500))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=50)
    steps = parser.parse_args().steps
    print(f"one game, random policy, {machine()}, jax {jax.__version__}\n")
    print("| grid | agents | tasks | ms/step | ns/(agent·task) |")
    print("|---:|---:|---:|---:|---:|")
    for side, agents in SIZES:
        game = Wildfire.from_config(large_config(side, agents, seed=0))
        run = jax.jit(partial(play_one, game, steps))
        run(jax.random.key(0)).block_until_ready()
        begin = time.perf_counter()
        result = run(jax.random.key(1)).block_until_ready()
        seconds = (time.perf_counter() - begin) / steps
        assert jnp.isfinite(result)
        pairs = agents * side * side
        print(
            f"| {side}×{side} | {agents} | {side * side:,} | {seconds * 1e3:.3f} "
            f"| {seconds * 1e9 / pairs:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
