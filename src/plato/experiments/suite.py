"""The paper's experiments as data: which rows, trained on what, playing what."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from plato.errors import PlatoError
from plato.evaluation.contestants import TRANSFER
from plato.evaluation.protocols import Protocol, ProtocolName, protocol
from plato.experiments.cells import Cell, Row, shortened
from plato.learners.config import (
    METHODS,
    MappoConfig,
    Maps,
    MethodName,
    TrainSettings,
)
from plato.policies.config import PAPER_FORM, ActorConfig
from plato.policies.pretrained import GENERALIST, PRETRAINED

GRIDS = ("2x3", "3x3", "4x4")
LEVELS = ("S0", "S1", "S2", "S3")
NATIVE = tuple(f"wildfire-{grid}-{level}" for grid in GRIDS for level in LEVELS)
FIRST_SEED = 42
FIELD_EPISODES = 400
"""Of each policy by the field's protocol: trainings are its unit, not episodes."""
CHECKPOINTS = 10
"""Kept of each training; the paper's rule chooses among those of its second half."""

Part: TypeAlias = Literal["methods", "ablation", "switches", "generalist", "given"]


def _plato(
    networks: Mapping[str, Any] = {},
    maps: Maps = "own",
    new_maps: int = 0,
    **learning: Any,
) -> TrainSettings:
    return TrainSettings(
        checkpoints=CHECKPOINTS,
        maps=maps,
        new_maps=new_maps,
        networks=ActorConfig(**networks),
        learning=MappoConfig(**learning),
    )


def _baseline(method: MethodName) -> TrainSettings:
    halves = METHODS[method]
    return TrainSettings(
        checkpoints=CHECKPOINTS, networks=halves.networks(), learning=halves.learning()
    )


PLANNER = "Assignment"
"""The given policy that knows the rules: no rival of those that have to learn."""
SHIPPED = "Shipped generalist"
"""The one policy for all setups that comes with PLATO."""
SHIPPED_AS = f"{PRETRAINED}:{GENERALIST}"
SHIPPED_STEPS = 381_504_000
"""Of its five trainings, which are recorded in results/generalist."""
PLATO = Row("PLATO", _plato())
ROWS: dict[Part, tuple[Row, ...]] = {
    "methods": (
        PLATO,
        Row("DICG", _baseline("dicg")),
        Row("DGN", _baseline("dgn")),
        Row("MOHITO", _baseline("mohito")),
    ),
    "ablation": (
        PLATO,
        Row("mlp+dot", _plato({"scorer": "dot"})),
        Row("lstm+add", _plato({"encoder": "lstm"})),
        Row("lstm+dot", _plato({"encoder": "lstm", "scorer": "dot"})),
    ),
    "switches": (
        PLATO,
        Row("Algorithm 1", _plato(PAPER_FORM)),
        Row("Algorithm 1 + ego", _plato(PAPER_FORM | {"ego": True})),
        Row("away removed", _plato({"away": "removed"})),
        Row("task pointer", _plato({"context": "pointer"})),
        # 1.6 rollouts to an update: as many steps as with one beginning.
        Row("four beginnings", _plato(beginnings=4, updates=234)),
    ),
    "generalist": (
        Row(SHIPPED, policy=SHIPPED_AS),
        # Some of its twelve setups look the same at first: it has to remember what it
        # has seen to tell them apart, and specialists to tell it what for. Where these
        # contradict each other returns have to decide, so that they are not heard long.
        Row(
            "PLATO generalist",
            _plato(
                {"encoder": "lstm", "context": "pointer", "depth": 2},
                maps="scattered",
                new_maps=20,
                games=768,
                updates=3600,
                entropy_end=0.0005,
                precision="bfloat16",
                advisers=("pretrained",),
                advised=0.35,
            ),
        ),
    ),
    "given": (
        Row("NOOP", policy="noop"),
        Row("Random", policy="random"),
        Row("Weakest", policy="weakest-released"),
        Row("Strongest", policy="strongest-released"),
        Row(PLANNER, policy="assignment"),
    ),
}
"""Everything that tables are made of. PLATO itself is the ablation's mlp+add."""


def in_order() -> list[Row]:
    """All rows, each once, in the order of tables."""
    return list(dict.fromkeys(row for part in ROWS.values() for row in part))


def protocols(names: Sequence[ProtocolName]) -> list[Protocol]:
    """The protocols by their names, as the suite uses them."""
    episodes = {"field": FIELD_EPISODES, "paper": None}
    return [protocol(name, episodes=episodes[name]) for name in names]


def cells(
    parts: Sequence[Part],
    protocols: Sequence[Protocol],
    *,
    methods: Sequence[str] = (),
    setups: Sequence[str] = NATIVE,
    seeds: int = 5,
    part_of_training: float = 1.0,
) -> list[Cell]:
    """The cells that some parts of the suite need, each once.

    `methods` are the names of rows to keep; all of them if none is named.
    """
    known = [row.name for row in in_order()]
    for name in methods:
        if name not in known:
            rows = ", ".join(map(repr, known))  # names have spaces
            raise PlatoError(f"There is no row {name!r}; choose from: {rows}.")
    for name in setups:
        if name not in NATIVE:
            raise PlatoError(
                f"{name} is not one of the paper's native setups: {', '.join(NATIVE)}."
            )
    found: dict[Cell, None] = {}
    for part in parts:
        for row in ROWS[part]:
            if methods and row.name not in methods:
                continue
            if row.settings is not None and part_of_training != 1.0:
                short = shortened(row.settings, part_of_training)
                row = replace(row, settings=short)
            for one in protocols:
                # The paper has no such row, nor noise for the maps that it plays.
                if part == "generalist" and one.noise == "paper":
                    continue
                of_row = _cells(row, one, setups, seeds, together=part == "generalist")
                found.update(dict.fromkeys(of_row))
    return list(found)


def _cells(
    row: Row, one: Protocol, setups: Sequence[str], seeds: int, *, together: bool
) -> Iterator[Cell]:
    everywhere = tuple(dict.fromkeys(s for name in setups for s in plays(name)))
    if row.settings is None:
        for setup in everywhere if together else setups:
            yield Cell(row, one, (), 0, (setup,))
        return
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        if together:
            yield Cell(row, one, tuple(setups), seed, everywhere)
            continue
        for setup in setups:
            yield Cell(row, one, (setup,), seed, plays(setup))


def plays(setup: str) -> tuple[str, ...]:
    """What the policies trained on a native setup play: that, and transfers of it."""
    _, grid, level = setup.split("-")
    transfers = [
        f"wildfire-{target}-{level}-transfer" for target in TRANSFER.get(grid, ())
    ]
    return (setup, *transfers)
