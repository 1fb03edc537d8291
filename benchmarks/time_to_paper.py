"""How long it takes from nothing to the return that the paper prints for PLATO.

    python benchmarks/time_to_paper.py [--setup wildfire-3x3-S3] [--seed 42]

`plato train` with its default settings, in a process of its own that finds nothing
compiled: its start, importing and compiling count. Every fifth update's policy is kept,
and the times are those of their files. The paper's return is reached by the first whose
mean return over 1,000 episodes, with noise of their own, is at least that, if all later
ones' are, too.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from plato.evaluation.evaluate import evaluate
from plato.evaluation.published import paper_cells
from plato.learners.config import MappoConfig, TrainConfig
from plato.policies.checkpoint import load_policy
from plato.runs.folder import RunFolder

EVERY = 5
EPISODES = 1_000
COMMAND = (sys.executable, "-m", "plato", "train")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--setup", default="wildfire-3x3-S3")
    parser.add_argument("--seed", type=int, default=42)
    options = parser.parse_args()
    _, grid, level = options.setup.split("-")
    goal = paper_cells("native", "return", grid, level)["PLATO"].mean
    with tempfile.TemporaryDirectory() as scratch:
        times = trained(options.setup, options.seed, Path(scratch))
        returns = {
            path: evaluate(
                load_policy(path), options.setup, episodes=EPISODES, seed=100_000
            )
            .metrics["return"]
            .mean()
            for path in times
        }
    print("| update | seconds | return |")
    print("|---:|---:|---:|")
    for path, mean in returns.items():
        print(f"| {int(path.stem)} | {times[path]:.0f} | {mean:.2f} |")
    below = [i for i, mean in enumerate(returns.values()) if mean < goal]
    later = list(times)[below[-1] + 1 if below else 0 :]
    said = f"reached after {times[later[0]]:.0f} s" if later else "not reached"
    last = list(times)[-1]
    print(
        f"\n{options.setup}: the paper's {goal} is {said}; after {times[last]:.0f} s "
        f"the training ends at {returns[last]:.2f}."
    )


def trained(setup: str, seed: int, scratch: Path) -> dict[Path, float]:
    """The policies of a training, and when they were there: seconds from its start."""
    run, kept = scratch / "run", MappoConfig().updates // EVERY
    flags = {"setup": setup, "seed": seed, "checkpoints": kept, "out": run}
    words = [str(word) for name, of in flags.items() for word in (f"--{name}", of)]
    cold = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(scratch / "cache")}
    begun = time.time()
    subprocess.run([*COMMAND, *words], env=cold, check=True)
    (only,) = TrainConfig(setups=(setup,), seed=seed).runs
    files = RunFolder(run).checkpoints(only)
    return {path: path.stat().st_mtime - begun for path in files}


if __name__ == "__main__":
    main()
