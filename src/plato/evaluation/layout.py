"""Comparisons as tables of text: what is in which row and column.

As in the paper: a table for each metric, a row for each model, the setups of a grid
side by side. A single setup has one table, with the metrics side by side.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from plato.errors import PlatoError
from plato.evaluation.aggregates import STATISTICS, Estimate
from plato.evaluation.comparison import Cell, Comparison
from plato.evaluation.contestants import grid_of, level_of
from plato.evaluation.fine_print import fine_print
from plato.evaluation.metrics import METRICS
from plato.evaluation.published import PaperCell, PaperTable, paper_cells

BesidePaper: TypeAlias = Literal["main", "ablation"]
ABSENT = "–"


@dataclass(frozen=True)
class Entry:
    text: str
    bold: bool = False


@dataclass(frozen=True)
class Column:
    group: str
    label: str


@dataclass(frozen=True)
class Row:
    label: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Table:
    """A table before it is rendered; sections of rows are set apart by a rule."""

    title: str
    columns: tuple[Column, ...]
    sections: tuple[tuple[Row, ...], ...]

    def by_group(self) -> list["Table"]:
        """One table for each group of columns."""
        groups = dict.fromkeys(column.group for column in self.columns)
        return [self.take([c.group == group for c in self.columns]) for group in groups]

    def take(self, kept: Sequence[bool]) -> "Table":
        """The table with some of its columns."""

        def keep(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
            return tuple(e for e, k in zip(entries, kept, strict=True) if k)

        return Table(
            title=self.title,
            columns=tuple(c for c, k in zip(self.columns, kept, strict=True) if k),
            sections=tuple(
                tuple(Row(row.label, keep(row.entries)) for row in section)
                for section in self.sections
            ),
        )


@dataclass(frozen=True)
class Report:
    """All tables of a comparison, and how their numbers were made."""

    tables: tuple[Table, ...]
    protocol: str
    """In two words, for the title of every table."""
    note: str
    """In full."""


Place: TypeAlias = tuple[str, str]
"""A setup and a metric: what a column shows."""


def report(comparison: Comparison, paper: BesidePaper | None = None) -> Report:
    """The tables of a comparison; with `paper`, its printed numbers below ours."""
    metrics = comparison.metrics
    groups: dict[str, list[str]] = {}
    for setup in comparison.setups:
        groups.setdefault(_group(comparison, setup), []).append(setup)
    setups = [setup for group in groups.values() for setup in group]
    if len(setups) == 1:
        places = [[(setups[0], metric) for metric in metrics]]
        titles = [""]
    else:
        places = [[(setup, metric) for setup in setups] for metric in metrics]
        titles = [METRICS[metric].label for metric in metrics]
    if paper and not any(
        _paper_column(comparison, place, paper) for row in places for place in row
    ):
        raise PlatoError(
            f"The paper prints no number for {', '.join(setups)}; leave out "
            f"--beside-paper."
        )
    tables = [
        _values(comparison, title, columns, paper)
        for title, columns in zip(titles, places, strict=True)
    ]
    if metrics[0] in comparison.summaries:
        tables += [_aggregates(comparison), _improvement(comparison)]
    short = f"{comparison.protocol.name} protocol"
    return Report(
        tuple(tables), short, fine_print(comparison, beside_paper=paper is not None)
    )


def _values(
    comparison: Comparison,
    title: str,
    places: Sequence[Place],
    paper: BesidePaper | None,
) -> Table:
    single = len(comparison.setups) == 1
    columns = tuple(
        Column(
            _group(comparison, setup),
            METRICS[metric].label if single else _short(setup),
        )
        for setup, metric in places
    )

    def rows(names: Sequence[str]) -> tuple[Row, ...]:
        return tuple(
            Row(
                _row_label(comparison, name),
                tuple(_entry(comparison.cells[name, *place]) for place in places),
            )
            for name in names
        )

    given = [n for n in comparison.contestants if n not in comparison.trained]
    printed = _paper_rows(comparison, places, paper) if paper else ()
    sections = (rows(comparison.trained), rows(given), printed)
    return Table(title, columns, tuple(section for section in sections if section))


def _group(comparison: Comparison, setup: str) -> str:
    """What the setups of a group of columns have in common, in the paper's words."""
    single = len(comparison.setups) == 1
    sources = {
        grid_of(name)
        for contestant in comparison.trained
        for name in comparison.results[contestant, setup].trained_on
    }
    transfers = [
        comparison.results[contestant, setup].zero_shot
        for contestant in comparison.trained
    ]
    grid = grid_of(setup)
    where = setup if single or grid is None else _times(grid)
    if grid is None or None in sources or len(sources) != 1:
        return where
    (source,) = sources
    if not any(transfers):
        return setup if single else f"trained and tested on {where}"
    if all(transfers):
        return f"trained on {_times(str(source))}, tested (zero-shot) on {where}"
    return where


def _short(setup: str) -> str:
    level = level_of(setup)
    if level is None:
        return setup
    rest = setup.partition(level)[2].strip("-").replace("transfer", "").strip("-")
    return f"{level} {rest}".strip()


def _row_label(comparison: Comparison, name: str) -> str:
    least, most = comparison.trainings(name)
    if most < 2:
        return name
    return f"{name} ({least})" if least == most else f"{name} ({least}–{most})"


def _entry(cell: Cell) -> Entry:
    if cell.interval is not None:
        return Entry(_interval(cell.interval, 2), cell.bold)
    return Entry(f"{cell.mean:z.2f} ± {cell.std:.2f}", cell.bold)


def _interval(estimate: Estimate, digits: int) -> str:
    value, low, high = (
        f"{number:z.{digits}f}"
        for number in (estimate.value, estimate.low, estimate.high)
    )
    return f"{value} [{low}, {high}]"


def _aggregates(comparison: Comparison) -> Table:
    metric = comparison.metrics[0]
    aggregates = comparison.summaries[metric].aggregates
    group = f"{METRICS[metric].label}, normalised"
    rows = tuple(
        Row(
            _row_label(comparison, name),
            tuple(Entry(_interval(own[label], 3)) for label in STATISTICS),
        )
        for name, own in aggregates.items()
    )
    return Table("aggregates", tuple(Column(group, s) for s in STATISTICS), (rows,))


def _improvement(comparison: Comparison) -> Table:
    metric = comparison.metrics[0]
    chances = comparison.summaries[metric].improvement
    names = comparison.contestants
    group = f"{METRICS[metric].label}, row over column"
    rows = tuple(
        Row(
            _row_label(comparison, one),
            tuple(
                Entry(_interval(chances[one, other], 2) if one != other else ABSENT)
                for other in names
            ),
        )
        for one in names
    )
    columns = tuple(Column(group, name) for name in names)
    return Table("probability of improvement", columns, (rows,))


def _paper_rows(
    comparison: Comparison, places: Sequence[Place], which: BesidePaper
) -> tuple[Row, ...]:
    cells = [_paper_column(comparison, place, which) for place in places]
    models = dict.fromkeys(model for column in cells for model in column)
    return tuple(
        Row(
            f"{model} (paper)",
            tuple(
                Entry(f"{cell.mean:z.2f} ± {cell.std:.2f}", cell.bold)
                if (cell := column.get(model)) is not None
                else Entry(ABSENT)
                for column in cells
            ),
        )
        for model in models
    )


def _paper_column(
    comparison: Comparison, place: Place, which: BesidePaper
) -> dict[str, PaperCell]:
    """What the paper prints for a column, whichever grids it was transferred from."""
    setup, metric = place
    grid, level = grid_of(setup), level_of(setup)
    if grid is None or level is None:
        return {}
    prefix = "ablation_" if which == "ablation" else ""
    native: PaperTable = f"{prefix}native"  # pyright: ignore[reportAssignmentType]
    transfer: PaperTable = f"{prefix}zero_shot"  # pyright: ignore[reportAssignmentType]
    if setup == f"wildfire-{grid}-{level}":
        return paper_cells(native, metric, grid, level)
    if setup != f"wildfire-{grid}-{level}-transfer":
        return {}
    sources = dict.fromkeys(
        grid_of(name)
        for contestant in comparison.trained
        for name in comparison.results[contestant, setup].trained_on
    )
    return {
        model if len(sources) == 1 else f"{model} {source}": cell
        for source in sources
        for model, cell in paper_cells(
            transfer, metric, f"{source}->{grid}", level
        ).items()
    }


def _times(grid: str) -> str:
    return grid.replace("x", "×")
