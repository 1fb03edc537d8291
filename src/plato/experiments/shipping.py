"""Choosing the policies that come with the package, and writing them small.

    python -m plato.experiments.shipping CHECKPOINT… [--out FOLDER] [--temperature 0.5]
        [--setup SETUP…] [--parts 0.5 0.5]

Of all checkpoints trained on the same setups the one that does best on seeds that are
never reported is kept, with 16 bits to a number: `pretrained:SETUP`, and
`pretrained:generalist` for one that was trained on several setups. A temperature below
1 makes policies surer than they were when they had to explore. With `--setup`,
candidates are scored on these setups and not on those of their last training. With
`--parts`, all of them become one policy, whose weights are their weighted mean: that is
of use for trainings that began with the same policy.
"""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax

import plato
from plato.configuration import real_number
from plato.domains.setups import load_setup
from plato.domains.wildfire.optimum.known import known_optimum
from plato.errors import PlatoError
from plato.evaluation.evaluate import evaluate
from plato.evaluation.protocols import VALIDATION
from plato.files import file_digest
from plato.policies.checkpoint import load_actor, of_another_form, public_features
from plato.policies.pointer import PointerActor
from plato.policies.pretrained import GENERALIST
from plato.policies.scores import AdditiveScorer
from plato.tensors import halved, read_header, write_tree

EPISODES = 2_000
"""With which candidates are told apart, on each setup."""


def ship(
    checkpoints: Sequence[Path],
    out: Path,
    *,
    episodes: int = EPISODES,
    temperature: float = 1.0,
    setup: Sequence[str] = (),
    parts: Sequence[float] = (),
) -> None:
    """Writes the best checkpoint of each group of setups, and says how it did."""
    groups: dict[tuple[str, ...], list[Path]] = {}
    for path in checkpoints:
        setups = setup or read_header(path).get("about", {}).get("setups")
        if not setups:
            raise PlatoError(f"{path}: does not say what it was trained on.")
        groups.setdefault(tuple(setups), []).append(path)
    if parts:
        _check_parts(checkpoints, parts, len(groups))
    for setups, candidates in groups.items():
        actors = {path: actor_at(temperature, path) for path in candidates}
        if parts:
            actors = {candidates[0]: averaged([*actors.values()], parts)}
        scores = {p: score(actors[p], setups, episodes) for p in actors}
        best = max(scores, key=scores.__getitem__)
        name = setups[0] if len(setups) == 1 else GENERALIST
        header = read_header(best)
        chosen = {
            "of": len(scores),
            "by": f"{episodes} episodes on each setup from seed {VALIDATION.start}",
            "score": round(scores[best], 4),
        }
        header["about"] |= {"chosen": chosen, "setups": list(setups)}
        if parts:
            header["about"] |= {"parts": _parts(checkpoints, parts)}
        if temperature != 1:
            before = header["about"].get("temperature", 1.0)
            header["about"] |= {"temperature": before * temperature}
        header["public"] = public_features(best)
        write_tree(out / f"{name}.safetensors", halved(actors[best]), header)
        others = ", ".join(f"{value:.4f}" for value in scores.values())
        print(f"{name}: {scores[best]:.4f} of the optimum; candidates: {others}")


def actor_at(temperature: float, path: Path) -> PointerActor:
    """A trained actor whose scores are divided by a temperature."""
    actor = load_actor(path)
    if temperature == 1:
        return actor
    if not isinstance(actor.score, AdditiveScorer):
        raise PlatoError(
            f"{path}: its scores are dot products, which have no weights of their own "
            f"to hold a temperature."
        )
    return eqx.tree_at(lambda a: a.score, actor, actor.score.at(temperature))


def averaged(actors: Sequence[PointerActor], parts: Sequence[float]) -> PointerActor:
    """One actor, whose weights are the weighted mean of those of several."""

    def mean(*leaves: Any) -> Any:
        return sum(part * leaf for part, leaf in zip(parts, leaves, strict=True))

    dynamic, static = zip(
        *(eqx.partition(actor, eqx.is_inexact_array) for actor in actors), strict=True
    )
    return eqx.combine(jax.tree.map(mean, *dynamic), static[0])


def _check_parts(
    checkpoints: Sequence[Path], parts: Sequence[float], groups: int
) -> None:
    fits = len(parts) == len(checkpoints) and min(parts) >= 0
    if not fits or not math.isclose(sum(parts), 1):
        raise PlatoError(
            f"parts={list(parts)}: there must be one for each of the "
            f"{len(checkpoints)} checkpoints, none below 0, and their sum must be 1."
        )
    if other := of_another_form(checkpoints):
        raise PlatoError(
            f"{checkpoints[0]} and {other} differ in their networks; only policies of "
            f"one form have a mean."
        )
    if groups > 1:
        raise PlatoError(
            "The checkpoints were trained on different setups; say with --setup what "
            "their mean shall be scored on."
        )


def _parts(checkpoints: Sequence[Path], parts: Sequence[float]) -> list[dict[str, Any]]:
    """What a mean is of, for its header."""
    abouts = [read_header(path)["about"] for path in checkpoints]
    return [
        {"part": part, "file": file_digest(path), "update": about.get("update")}
        for part, path, about in zip(parts, checkpoints, abouts, strict=True)
    ]


def score(actor: PointerActor, setups: Sequence[str], episodes: int) -> float:
    """The mean share of the optimum over setups, with noise and choices drawn."""
    shares = []
    for name in setups:
        setup = load_setup(name)
        played = evaluate(actor, setup, episodes=episodes, seed=VALIDATION.start)
        best = known_optimum(setup)
        if best is None:
            raise PlatoError(f"The optimum of {name} is not known.")
        shares.append(float(played.metrics["return"].mean()) / best)
    return sum(shares) / len(shares)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoints", nargs="+", type=Path)
    shipped = Path(plato.__file__).parent / "data" / "pretrained"
    parser.add_argument("--out", type=Path, default=shipped)
    parser.add_argument("--episodes", type=int, default=EPISODES)
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--setup", nargs="+", default=[])
    parser.add_argument("--parts", nargs="+", type=float, default=[])
    options = parser.parse_args(arguments)
    real_number("temperature", options.temperature, above=True)
    ship(**vars(options))


if __name__ == "__main__":
    main()
