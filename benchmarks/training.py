"""Environment steps per second of the whole training loop, and compile times.

    python benchmarks/training.py [--setup wildfire-3x3-S3] [--games 64 256 1024]
    python benchmarks/training.py --methods plato dicg dgn mohito
    python benchmarks/training.py --context pointer     # PLATO with a task pointer
    python benchmarks/training.py --methods mohito --seeds 10    # ten in one program

Playing, learning and everything between them count; compiling does not. Sizes and
settings are each method's defaults (hidden 128 and 4 epochs for PLATO) but for those
named here. `whole run` is what all updates of the default settings would take.
"""

import argparse
import time
from dataclasses import replace
from typing import Any

import jax

from environment import machine
from plato.domains.setups import load_setup
from plato.learners.config import METHODS, TrainConfig
from plato.learners.program import Program
from plato.policies.config import ActorConfig


def measure(config: TrainConfig, seconds: float) -> tuple[float, float]:
    """Steps per second, and how much longer the first update takes than a later one."""
    setups = {name: load_setup(name) for name in config.setups}
    begin = time.perf_counter()
    program = Program(config, setups)
    learner, _ = jax.block_until_ready(program.advance(program.start(), 1))
    compiling = time.perf_counter() - begin
    # Methods with a memory learn nothing, and so are faster, until it is filled.
    steps = config.learning.games * config.learning.steps
    warm_up = getattr(config.learning, "warm_up", 0) // steps
    for _ in range(warm_up + 1):
        learner, _ = program.advance(learner, 1)
    jax.block_until_ready(learner)
    begin, updates = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds or updates < 3:
        learner, _ = program.advance(learner, 1)
        jax.block_until_ready(learner)
        updates += 1
    took = time.perf_counter() - begin
    return updates * steps * config.seeds / took, compiling - took / updates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=["plato"])
    parser.add_argument("--setup", default="wildfire-3x3-S3")
    parser.add_argument("--seeds", type=int, default=1, help="trainings side by side")
    parser.add_argument("--games", type=int, nargs="+", help="default: the method's")
    for name in ("steps", "minibatches", "epochs"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--context", choices=["none", "statistics", "pointer"])
    parser.add_argument("--precision", choices=["float32", "bfloat16"])
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    print(f"{options.setup}, training, {machine()}, jax {jax.__version__}\n")
    print("| method | games | steps/s | compile | whole run |")
    print("|---|---:|---:|---:|---:|")
    for method in options.methods:
        halves = METHODS[method]
        networks, learning = halves.networks(), halves.learning()
        if options.context and isinstance(networks, ActorConfig):
            networks = replace(networks, context=options.context)
        names = ("steps", "minibatches", "epochs", "precision")
        given: dict[str, Any] = {n: getattr(options, n) for n in names}
        given = {name: value for name, value in given.items() if value is not None}
        for games in options.games or [learning.games]:
            settings = replace(learning, games=games, **given)
            config = TrainConfig(
                setups=(options.setup,),
                seeds=options.seeds,
                networks=networks,
                learning=settings,
            )
            rate, compiling = measure(config, options.seconds)
            whole = options.seeds * learning.played(learning.updates) / rate
            print(
                f"| {method} | {games:,} | {rate:,.0f} | {compiling:.1f} s "
                f"| {whole:,.0f} s |",
                flush=True,
            )


if __name__ == "__main__":
    main()
