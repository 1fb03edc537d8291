"""Steps per second through the PettingZoo view and the batched NumPy view.

python benchmarks/adapters.py
"""

import time
from collections.abc import Callable

import numpy as np

import plato
from environment import machine

SETUP = "wildfire-3x3-S3"


def rate(step: Callable[[], int], seconds: float = 2.0) -> float:
    """Steps per second, after a first call that compiles."""
    step()
    begin, steps = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        steps += step()
    return steps / (time.perf_counter() - begin)


def zoo_step() -> Callable[[], int]:
    env = plato.parallel_env(SETUP)
    env.reset(seed=0)

    def step() -> int:
        if not env.agents:
            env.reset()
        env.step({agent: env.action_space(agent).sample() for agent in env.agents})
        return 1

    return step


def batched_step(games: int) -> Callable[[], int]:
    batch = plato.BatchedGame(SETUP, games=games)
    batch.reset()
    idle = np.zeros((games, batch.capacity.agents), int)

    def step() -> int:
        batch.step(idle)
        return games

    return step


def main() -> None:
    print(f"{SETUP}, {machine()}\n")
    print("| view | games | steps/s |")
    print("|---|---:|---:|")
    print(f"| PettingZoo, random | 1 | {rate(zoo_step()):,.0f} |")
    for games in (1, 64, 1024):
        print(f"| NumPy, idle | {games:,} | {rate(batched_step(games)):,.0f} |")


if __name__ == "__main__":
    main()
