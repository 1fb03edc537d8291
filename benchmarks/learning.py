"""What the trainings of a run have learned, beside the optimum and the heuristics.

    python benchmarks/learning.py RUN [--episodes 2000] [--actions greedy]

The last policy of each training plays the setups it was trained on, with noise of its
own and seeds that no training and no choice has seen. A row has the mean over trainings
and episodes, each training's own mean, the share of the optimum where that is known,
the best heuristic, and p of the difference to it (t-tests over trainings and episodes,
the largest p over the heuristics).
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from plato.domains.setups import load_setup
from plato.domains.wildfire.optimum.known import known_optimum
from plato.evaluation.evaluate import evaluate
from plato.evaluation.named import Actions, acting
from plato.evaluation.significance import crossed_test
from plato.policies.checkpoint import load_policy
from plato.runs.folder import RunFolder

HEURISTICS = ("noop", "random", "weakest", "strongest")
HEAD = """\
| setup | return | trainings | of the optimum | best heuristic | p |
|---|---:|---:|---:|---:|---:|"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--episodes", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=100_000)
    parser.add_argument("--actions", default="own", choices=["own", "greedy"])
    options = parser.parse_args()
    print(HEAD)
    for line in table(options.run, options.episodes, options.seed, options.actions):
        print(line, flush=True)


def table(
    run: Path, episodes: int, seed: int = 100_000, actions: Actions = "own"
) -> Iterator[str]:
    """A row for each setup that the trainings of a run were of."""
    folder = RunFolder(run)
    runs = folder.config().runs
    for name in dict.fromkeys(setup for one in runs for setup in one.setups):
        files = [folder.last_checkpoint(one) for one in runs if name in one.setups]
        yield row(name, files, episodes, seed, actions)


def row(
    name: str, files: list[Path], episodes: int, seed: int, actions: Actions
) -> str:
    """What the policies of some trainings earn on a setup."""
    setup = load_setup(name)

    def returns(policy: Any) -> np.ndarray:
        played = evaluate(policy, setup, episodes=episodes, seed=seed)
        return played.metrics["return"]

    learned = np.stack([returns(acting(load_policy(f), actions)) for f in files])
    given = {rule: returns(rule)[None] for rule in HEURISTICS}
    best = max(given, key=lambda rule: given[rule].mean())
    p = max(crossed_test(learned, other).p for other in given.values())
    mean, optimum = learned.mean(), known_optimum(setup)
    share = "–" if optimum is None else f"{100 * mean / optimum:.1f} %"
    each = ", ".join(f"{one:.2f}" for one in learned.mean(axis=1))
    return (
        f"| {name} | {mean:.2f} | {each} | {share} "
        f"| {best} {given[best].mean():.2f} | {p:.1g} |"
    )


if __name__ == "__main__":
    main()
