"""What the policies that come with PLATO are worth, beside the optimum.

python benchmarks/pretrained.py [--episodes 2000] [--seed 100000]
"""

import argparse

import plato
from plato.domains.setups import load_setup
from plato.domains.wildfire.optimum.known import known_optimum
from plato.evaluation.evaluate import evaluate
from plato.experiments.suite import GRIDS, LEVELS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=100_000)
    options = parser.parse_args()
    print(f"| | {' | '.join(LEVELS)} |")
    print(f"|---|{'---:|' * len(LEVELS)}")
    for grid in GRIDS:
        cells = []
        for level in LEVELS:
            setup = load_setup(f"wildfire-{grid}-{level}")
            best = known_optimum(setup)
            if best is None:
                raise plato.PlatoError(f"The optimum of {setup.name} is not known.")
            played = evaluate("pretrained", setup, **vars(options))
            mean = played.metrics["return"].mean()
            cells.append(f"{mean:.2f} ({100 * mean / best:.1f} %)")
        print(f"| {grid.replace('x', '×')} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
