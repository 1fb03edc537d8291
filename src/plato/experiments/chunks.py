"""Cells that go together: chunks whose trainings are one program."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from plato.errors import PlatoError
from plato.experiments.cells import Cell
from plato.learners.config import RunName, TrainConfig


def together(cells: Sequence[Cell]) -> TrainConfig:
    """One configuration for the trainings of several cells.

    They must be all pairs of some setups and some seeds that follow each other, of one
    row and protocol: see `stacked`.
    """
    first = min(cells, key=lambda cell: cell.seed).config()
    seeds = len({cell.seed for cell in cells})
    if len(first.setups) > 1:
        return replace(first, seeds=seeds)
    setups = dict.fromkeys(name for cell in cells for name in cell.trained_on)
    return replace(first, setups=tuple(setups), fleet=True, seeds=seeds)


def covers(config: TrainConfig, cells: Sequence[Cell]) -> bool:
    """Whether a training is that of these cells, and maybe of others beside them."""
    return all(_covers(config, cell) for cell in cells)


def _covers(config: TrainConfig, cell: Cell) -> bool:
    if RunName(cell.trained_on, cell.seed) not in config.runs:
        return False
    alone = replace(
        config,
        setups=cell.trained_on,
        fleet=False,
        seeds=1,
        seed=cell.seed,
        game_seed=config.game_seed + cell.seed - config.seed,
    )
    return alone == cell.config()


def stacked(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Cells in chunks that can be trained in one program, as large as can be."""
    rows: dict[Any, dict[tuple[str, ...], set[int]]] = {}
    by_place: dict[Any, Cell] = {}
    chunks: list[list[Cell]] = []
    for cell in cells:
        if not cell.trained_on:
            chunks.append([cell])
            continue
        many = cell.trained_on if len(cell.trained_on) > 1 else ()
        which = (cell.row, cell.protocol, many)
        rows.setdefault(which, {}).setdefault(cell.trained_on, set()).add(cell.seed)
        by_place[which, cell.trained_on, cell.seed] = cell
    for which, seeds_of in rows.items():
        # Setups that lack the same seeds go together.
        alike: dict[frozenset[int], list[tuple[str, ...]]] = {}
        for setups, seeds in seeds_of.items():
            alike.setdefault(frozenset(seeds), []).append(setups)
        for seeds, places in alike.items():
            chunks += [
                [by_place[which, place, seed] for place in places for seed in span]
                for span in _spans(sorted(seeds))
            ]
    return chunks


def halves(cells: Sequence[Cell]) -> tuple[list[Cell], list[Cell]]:
    """A chunk in two that can be trained as well; by setups, else by seeds."""
    if len(cells) < 2:
        raise PlatoError(f"{cells[0]} does not fit into this device's memory.")
    by = (lambda c: c.trained_on) if len({c.trained_on for c in cells}) > 1 else _seed
    kinds = list(dict.fromkeys(map(by, cells)))
    first = set(kinds[: len(kinds) // 2])
    return [c for c in cells if by(c) in first], [
        c for c in cells if by(c) not in first
    ]


def _seed(cell: Cell) -> int:
    return cell.seed


def _spans(seeds: Sequence[int]) -> Iterator[list[int]]:
    """Runs of numbers that follow each other."""
    span: list[int] = []
    for seed in seeds:
        if span and seed != span[-1] + 1:
            yield span
            span = []
        span.append(seed)
    if span:
        yield span
