"""`plato reproduce` and `plato report`: the paper's experiments, and what came of
them."""

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from plato.cli.clusters import check_cluster
from plato.cli.commands import Repeated
from plato.cli.console import console, set_up_jax
from plato.errors import PlatoError

if TYPE_CHECKING:
    from rich.console import Console

    from plato.evaluation.protocols import ProtocolName
    from plato.experiments.cells import Cell
    from plato.experiments.store import Store
    from plato.experiments.suite import Part

Only: TypeAlias = Literal[
    "tables",
    "native",
    "zero-shot",
    "ablation",
    "switches",
    "generalist",
    "all",
    "heuristics",
]
PARTS: "dict[Only, tuple[Part, ...]]" = {
    "tables": ("given", "methods", "ablation"),
    "native": ("given", "methods"),
    "zero-shot": ("methods",),
    "ablation": ("ablation",),
    "switches": ("switches",),
    "generalist": ("generalist",),
    "all": ("given", "methods", "ablation", "switches", "generalist"),
}


@dataclass(frozen=True, kw_only=True)
class Reproduce:
    """Do the paper's experiments: whatever of them the store does not hold yet.

    Stop it at any time; the same command goes on. `plato report` shows the results.
    """

    only: Only = "tables"
    """tables: all of the paper's; native, zero-shot, ablation: what one kind of them
    needs; switches: PLATO's forms, one switch at a time; generalist: one policy for all
    setups, the one that ships and trainings of such (by the field's protocol alone);
    all: everything; heuristics: check the paper's 360 numbers of NOOP, Weakest and
    Strongest."""
    methods: Repeated[tuple[str, ...]] = ()
    """Rows to do, as tables call them (default: all); may be repeated."""
    setup: Repeated[str] = ()
    """Native setups to do (default: all 12); may be repeated."""
    seeds: int = 5
    """Trainings of each row on each setup."""
    protocol: Literal["both", "paper", "field"] = "both"
    """Whose noise to train and evaluate on, and whose rules to report by."""
    store: Path = Path("results")
    """The folder of the results."""
    engine: Literal["auto", "local", "gpu", "ray"] = "auto"
    """local: one cell after the other; gpu: as many as can be in one program; ray: on a
    cluster (extra `cluster`); auto: what this machine has."""
    address: str | None = None
    """Of a Ray cluster; without it, one is started on this machine."""
    gpus: float = 0.0
    """With ray: what each cell is given of a GPU."""
    part_of_training: float = 1.0
    """Cuts all trainings short, to try things out."""

    when_stopped: ClassVar[str] = "What is done is kept; the same command goes on."
    """Said after Ctrl-C."""

    def run(self) -> int:
        set_up_jax()
        if self.only == "heuristics":
            return _check_heuristics()
        from plato.experiments.engines import engine
        from plato.experiments.store import Store

        cells, store = self.cells(), Store(self.store)
        where = engine(self.engine, self.address, self.gpus)
        flags = _flags(self.seeds, self.part_of_training)
        return _reproduce(cells, store, where, console(), flags)

    def cells(self) -> "list[Cell]":
        """What is asked for, if it can be done."""
        from plato.experiments import suite

        _check(self.seeds, self.part_of_training)
        check_cluster(self.engine, self.address, self.gpus, "cells")
        methods = [name for group in self.methods for name in group]
        found = suite.cells(
            PARTS[self.only],
            suite.protocols(_protocols(self.protocol)),
            methods=methods,
            setups=self._setups(),
            seeds=self.seeds,
            part_of_training=self.part_of_training,
        )
        if not found:
            raise PlatoError(self._nothing(methods))
        return found

    def _nothing(self, methods: Sequence[str]) -> str:
        """Why there is nothing to do, and what to ask for instead."""
        from plato.experiments import suite

        named = f" of the rows {', '.join(map(repr, methods))}" if methods else ""
        said = f"--only {self.only} has no cell{named} by --protocol {self.protocol}"
        having = {
            part
            for part, rows in suite.ROWS.items()
            if not methods or any(row.name in methods for row in rows)
        }
        if having.isdisjoint(PARTS[self.only]):
            others = [only for only, parts in PARTS.items() if having & set(parts)]
            return f"{said}; choose --only {' or '.join(others)}."
        return f"{said}: generalists are there by the field's; choose --protocol field."

    def _setups(self) -> Sequence[str]:
        """The native setups that are trained on."""
        from plato.evaluation.contestants import TRANSFER
        from plato.experiments import suite

        setups = self.setup or suite.NATIVE
        if self.only != "zero-shot":
            return setups
        home = [name for name in suite.NATIVE if len(suite.plays(name)) == 1]
        carried = [name for name in setups if name not in home]
        if not carried:
            raise PlatoError(
                f"--only zero-shot has no transfer of {', '.join(setups)}; choose "
                f"setups of {' or '.join(TRANSFER)}."
            )
        return carried


def _check(seeds: int, part_of_training: float) -> None:
    from plato.configuration import whole_number

    whole_number("seeds", seeds, 1)
    if not 0 < part_of_training <= 1:
        raise PlatoError("--part-of-training must be above 0 and at most 1.")


def _flags(seeds: int, part_of_training: float) -> str:
    """With what `plato report` finds the same results."""
    more = f" --seeds {seeds}" if seeds != Report.seeds else ""
    if part_of_training != Report.part_of_training:
        more += f" --part-of-training {part_of_training!r}"
    return more


def _protocols(which: str) -> "list[ProtocolName]":
    return ["paper", "field"] if which == "both" else [which]  # pyright: ignore[reportReturnType]


def _reproduce(
    cells: "Sequence[Cell]", store: "Store", engine, out: "Console", flags: str
) -> int:
    from plato.cli.progress import shown

    missing, made_by = _looked_through(cells, store)
    _tell_damaged(store, out)
    out.print(
        f"{len(cells)} cell(s), {len(cells) - len(missing)} of them done already; "
        f"the store is {store.path}.",
        soft_wrap=True,
    )
    _tell_other_code(made_by, out)
    if missing:
        with shown(missing, out) as listener:
            engine.run(missing, store, listener)
    left = sum(not store.has(cell) for cell in cells)
    if left:
        out.print(
            f"{left} cell(s) are being done by another process; run this again when it "
            f"has ended.",
            soft_wrap=True,
        )
        return 0
    where = shlex.quote(str(store.path))
    out.print(
        f"All {len(cells)} cell(s) are done: plato report --store {where}{flags}",
        soft_wrap=True,
    )
    return 0


def _looked_through(
    cells: "Sequence[Cell]", store: "Store"
) -> "tuple[list[Cell], Counter[str]]":
    """What is missing, and how many of the others each state of the code made."""
    missing: list[Cell] = []
    made_by: Counter[str] = Counter()
    for cell in cells:
        entry = store.find(cell)
        if entry is None:
            missing.append(cell)
        else:
            made_by[entry.data["code"].get("digest", "unknown")] += 1
    return missing, made_by


def _tell_other_code(made_by: "Counter[str]", out: "Console") -> None:
    from plato.experiments.work import code

    others = {digest: n for digest, n in made_by.items() if digest != code()["digest"]}
    if others:
        out.print(
            f"{sum(others.values())} of these were made by {len(others)} other "
            f"state(s) of PLATO's code; they count, and with another --store all is "
            f"done by this one.",
            soft_wrap=True,
        )


def _tell_damaged(store: "Store", out: "Console") -> None:
    for path in store.damaged:
        out.print(
            f"A result could not be read; it is in {path} now, and will be done again.",
            soft_wrap=True,
        )
    for setup, count in Counter(store.changed.values()).items():
        out.print(
            f"{setup} is another setup than the one that {count} result(s) were made "
            f"with; they are kept, do not count, and will be done again.",
            soft_wrap=True,
        )


def _check_heuristics() -> int:
    from plato.experiments.heuristics import compare_heuristics
    from plato.experiments.tables import heuristics_table

    out = console()
    with out.status("playing 12 setups x 3 policies x 50 episodes"):
        comparisons = list(compare_heuristics())
    out.print(heuristics_table(comparisons, out.width))
    agree = sum(comparison.agreements for comparison in comparisons)
    total = 2 * len(comparisons)
    out.print(f"{agree} of {total} numbers agree with the paper to two decimals.")
    return 0 if agree == total else 1


@dataclass(frozen=True, kw_only=True)
class Report:
    """Turn a store into a report: all tables beside the paper's, curves, and costs."""

    store: Path = Path("results")
    """The folder of the results."""
    out: Path | None = None
    """The file to write (default: report.html, .md or .tex in the store)."""
    format: Literal["html", "markdown", "latex"] = "html"
    """A page that needs nothing else, or text."""
    seeds: int = 5
    """Trainings of each row to show, from the first seed on."""
    part_of_training: float = 1.0
    """Shows what `plato reproduce` did with the same flag."""

    def run(self) -> int:
        set_up_jax()
        from plato.experiments import suite
        from plato.experiments.recorded import done
        from plato.experiments.report import write_report
        from plato.experiments.store import Store

        _check(self.seeds, self.part_of_training)
        if not (self.store / "cells").is_dir():
            raise PlatoError(
                f"{self.store}: holds no results; make some with `plato reproduce`."
            )
        out, store = console(), Store(self.store)
        cells = suite.cells(
            PARTS["all"],
            suite.protocols(["field", "paper"]),
            seeds=self.seeds,
            part_of_training=self.part_of_training,
        )
        with out.status("reading"):
            found = done(store, cells)
            shown = {one.entry.fingerprint for one in found}
            others = sum(entry.fingerprint not in shown for entry in store.entries())
        _tell_damaged(store, out)
        if not found:
            raise PlatoError(
                f"{self.store}: none of its {others} results is of this suite; they "
                f"were made with other settings or another version."
            )
        if others:
            out.print(
                f"{others} results in the store are of other settings; they stay, and "
                f"are not shown.",
                soft_wrap=True,
            )
        suffix = {"html": "html", "markdown": "md", "latex": "tex"}[self.format]
        path = self.out or self.store / f"report.{suffix}"
        write_report(found, path, self.format)
        out.print(f"{len(found)} of {len(cells)} cells: {path}", soft_wrap=True)
        return 0
