"""Environment steps per second of the whole training loop, and compile times.

    python benchmarks/training.py [--setup wildfire-3x3-S3] [--games 32 256 1024]

Rollouts, advantages and all gradient steps of the default method (hidden 128, 4 epochs)
count; compiling does not.
"""

import argparse
import time
from dataclasses import replace

import jax

from environment import machine
from plato.domains.setups import load_setup
from plato.learners.config import MappoConfig, TrainConfig
from plato.learners.program import Program
from plato.policies.config import ActorConfig


def measure(config: TrainConfig, seconds: float) -> tuple[float, float]:
    """Steps per second and seconds until the first update is done."""
    setups = {name: load_setup(name) for name in config.setups}
    begin = time.perf_counter()
    program = Program(config, setups)
    learner, _ = jax.block_until_ready(program.advance(program.start()))
    compiling = time.perf_counter() - begin
    begin, updates = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds or updates < 3:
        learner, _ = program.advance(learner)
        jax.block_until_ready(learner)
        updates += 1
    took = time.perf_counter() - begin
    return updates * program.steps_per_update / took, compiling


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--setup", default="wildfire-3x3-S3")
    parser.add_argument("--games", type=int, nargs="+", default=[32])
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--minibatches", type=int, default=4)
    parser.add_argument("--depth", type=int, default=ActorConfig().depth)
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    base = TrainConfig(
        setups=(options.setup,),
        networks=ActorConfig(depth=options.depth),
        learning=MappoConfig(
            steps=options.steps,
            minibatches=options.minibatches,
            precision=options.precision,
        ),
    )
    print(f"{options.setup}, training, {machine()}, jax {jax.__version__}\n")
    print("| games | steps/s | first update |")
    print("|---:|---:|---:|")
    for games in options.games:
        config = replace(base, learning=replace(base.learning, games=games))
        rate, compiling = measure(config, options.seconds)
        print(f"| {games:,} | {rate:,.0f} | {compiling:.1f} s |", flush=True)


if __name__ == "__main__":
    main()
