"""How long it takes from nothing to the return that the paper prints for PLATO.

    python benchmarks/time_to_paper.py [--setup wildfire-3x3-S3] [--seed 42]

A training with the default settings, in a process that has just begun: importing and
compiling count, the evaluation afterwards does not. Every fifth update's policy is
kept; the time is that of the first whose mean return over 1,000 episodes, with noise of
their own, is at least the paper's and stays so to the end of the training.
"""

import time

BEGUN = time.monotonic()

import argparse  # noqa: E402
import tempfile  # noqa: E402
from pathlib import Path  # noqa: E402

from plato.evaluation.evaluate import evaluate  # noqa: E402
from plato.evaluation.published import paper_cells  # noqa: E402
from plato.learners.config import TrainConfig  # noqa: E402
from plato.policies.checkpoint import load_policy  # noqa: E402
from plato.runs.folder import RunFolder  # noqa: E402
from plato.runs.train import Progress, train  # noqa: E402

EVERY = 5
EPISODES = 1_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--setup", default="wildfire-3x3-S3")
    parser.add_argument("--seed", type=int, default=42)
    options = parser.parse_args()
    _, grid, level = options.setup.split("-")
    goal = paper_cells("native", "return", grid, level)["PLATO"].mean
    plain = TrainConfig(setups=(options.setup,), seed=options.seed)
    kept = plain.learning.updates // EVERY
    config = TrainConfig(setups=plain.setups, seed=options.seed, checkpoints=kept)
    with tempfile.TemporaryDirectory() as scratch:
        folder = RunFolder.create(Path(scratch) / "run", config)
        times: dict[int, float] = {}

        def report(progress: Progress) -> None:
            times[progress.update] = time.monotonic() - BEGUN

        train(folder, report)
        whole = time.monotonic() - BEGUN
        returns = {
            int(path.stem): evaluate(
                load_policy(path), options.setup, episodes=EPISODES, seed=100_000
            )
            .metrics["return"]
            .mean()
            for path in folder.checkpoints(config.runs[0])
        }
    print("| update | seconds | return |")
    print("|---:|---:|---:|")
    for update, mean in returns.items():
        print(f"| {update} | {seconds_at(times, update):.0f} | {mean:.2f} |")
    below = [update for update, mean in returns.items() if mean < goal]
    reached = min((u for u in returns if not below or u > below[-1]), default=None)
    said = (
        "not reached"
        if reached is None
        else f"reached after {seconds_at(times, reached):.0f} s"
    )
    print(
        f"\n{options.setup}: the paper's {goal} is {said}; the training took "
        f"{whole:.0f} s and ended at {returns[max(returns)]:.2f}."
    )


def seconds_at(times: dict[int, float], update: int) -> float:
    """When an update was known to be done: at the first report from it on."""
    return next(seconds for at, seconds in times.items() if at >= update)


if __name__ == "__main__":
    main()
