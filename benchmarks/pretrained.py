"""What the policies that come with PLATO are worth, beside the optimum if it is known.

python benchmarks/pretrained.py [--policy pretrained:generalist] [--episodes 2000]
"""

import argparse

from plato.domains.setups import load_setup
from plato.domains.wildfire.optimum.known import known_optimum
from plato.evaluation.evaluate import evaluate
from plato.experiments.suite import GRIDS, LEVELS

LARGEST = "5x5"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy", default="pretrained")
    parser.add_argument("--episodes", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=100_000)
    options = parser.parse_args()
    own = options.policy == "pretrained"
    places = [(grid, "") for grid in GRIDS]
    if not own:
        places += [(grid, "-transfer") for grid in (*GRIDS[1:], LARGEST)]
    print(f"| | {' | '.join(LEVELS)} |")
    print(f"|---|{'---:|' * len(LEVELS)}")
    for grid, where in places:
        names = [f"wildfire-{grid}-{level}{where}" for level in LEVELS]
        cells = [worth(name, **vars(options)) for name in names]
        title = grid.replace("x", "×") + where.replace("-", " ")
        print(f"| {title} | {' | '.join(cells)} |", flush=True)


def worth(name: str, policy: str, episodes: int, seed: int) -> str:
    """The mean return, and its share of the optimum."""
    setup = load_setup(name)
    played = evaluate(policy, setup, episodes=episodes, seed=seed)
    mean, best = played.metrics["return"].mean(), known_optimum(setup)
    return f"{mean:.2f}" if best is None else f"{mean:.2f} ({100 * mean / best:.1f} %)"


if __name__ == "__main__":
    main()
