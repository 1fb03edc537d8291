"""What the policies that come with PLATO are worth, beside the optimum if it is known.

    python benchmarks/pretrained.py                                  # the specialists
    python benchmarks/pretrained.py --policy pretrained:generalist   # or any other

Specialists play their own setups, and the same on the maps that the paper transfers
them to; any other policy plays all of these.
"""

import argparse
from collections.abc import Iterator

from plato.domains.setups import load_setup
from plato.domains.wildfire.optimum.known import known_optimum
from plato.evaluation.contestants import TRANSFER
from plato.evaluation.evaluate import evaluate
from plato.experiments.suite import GRIDS, LEVELS

OWN = "pretrained"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy", default=OWN)
    parser.add_argument("--episodes", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=100_000)
    options = parser.parse_args()
    print(f"| | {' | '.join(LEVELS)} |")
    print(f"|---|{'---:|' * len(LEVELS)}")
    for title, played in rows(options.policy):
        cells = [worth(*one, options.episodes, options.seed) for one in played]
        print(f"| {title.replace('x', '×')} | {' | '.join(cells)} |", flush=True)


def rows(policy: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Titles, and for each level of openness a policy and what it plays."""
    for grid in GRIDS:
        yield grid, [(policy, f"wildfire-{grid}-{level}") for level in LEVELS]
    ways = [(home, away) for home in TRANSFER for away in TRANSFER[home]]
    if policy == OWN:
        for home, away in ways:
            specialists = [f"{OWN}:wildfire-{home}-{level}" for level in LEVELS]
            played = zip(specialists, elsewhere(away), strict=True)
            yield f"{away} transfer, from {home}", list(played)
    else:
        for away in dict.fromkeys(away for _, away in ways):
            yield f"{away} transfer", [(policy, setup) for setup in elsewhere(away)]


def elsewhere(grid: str) -> list[str]:
    """The setups on a grid that nobody was trained on."""
    return [f"wildfire-{grid}-{level}-transfer" for level in LEVELS]


def worth(policy: str, name: str, episodes: int, seed: int) -> str:
    """The mean return, and its share of the optimum."""
    setup = load_setup(name)
    played = evaluate(policy, setup, episodes=episodes, seed=seed)
    mean, best = played.metrics["return"].mean(), known_optimum(setup)
    return f"{mean:.2f}" if best is None else f"{mean:.2f} ({100 * mean / best:.1f} %)"


if __name__ == "__main__":
    main()
