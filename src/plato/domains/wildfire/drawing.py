"""A moment of a wildfire drawn for the terminal."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rich.console import Group
from rich.table import Table
from rich.text import Text

from plato.domains.wildfire.config import WildfireConfig

Cell: TypeAlias = tuple[int, int]

CELL_WIDTH = 10
"""Characters that a cell takes in a table, at most, with its frame."""
LEGEND = (
    "F2·1: burning, size 2, intensity 1    f2: can burn, not lit    x2: burnt out\n"
    "A1·2: agent 1 with 2 suppressant, A1·2→: it fights what lies there    "
    "a1: agent 1, away"
)
SMALL_LEGEND = "1–9: burning, intensity    ·: can burn    x: burnt out    A, a: agents"
ARROWS = ("↖↑↗", "←●→", "↙↓↘")
"""Towards where, from what lies in the middle."""


@dataclass(frozen=True)
class Sketch:
    """What is drawn: an entry for each cell that can burn, and for each agent."""

    burning: Sequence[bool]
    intensity: Sequence[int]
    suppressant: Sequence[float]
    targets: Sequence[Cell | None]
    """The cell that each agent fights, if it does."""


def start_of(config: WildfireConfig) -> Sketch:
    """A setup as it begins."""
    fire, cells = config.fire, config.fire_cells
    lit = [fire.lit[y][x] for y, x in cells]
    heat = [fire.ignition_temp[y][x] for y, x in cells]
    return Sketch(
        burning=lit,
        intensity=[h if burns else 0 for h, burns in zip(heat, lit, strict=True)],
        suppressant=config.agent.initial_suppressants,
        targets=[None] * len(config.agent.agents),
    )


def draw_grid(
    config: WildfireConfig, width: int, sketch: Sketch | None = None
) -> Group | Text:
    """The grid in so many columns: fires with size and intensity, agents with tanks.

    Where there is too little room for that, a character for each cell.
    """
    sketch = sketch or start_of(config)
    if config.grid_width * CELL_WIDTH < width:
        return Group(_table(config, sketch), Text(LEGEND, style="dim"))
    if config.grid_width * 2 <= width:
        return Group(_characters(config, sketch), Text(SMALL_LEGEND, style="dim"))
    return Text(f"{config.grid_height}×{config.grid_width} is too large to draw here.")


def _table(config: WildfireConfig, sketch: Sketch) -> Table:
    table = Table(show_lines=True, show_header=False, padding=(0, 1))
    for _ in range(config.grid_width):
        table.add_column(justify="center", min_width=5)
    texts = _empty(config)
    for (y, x), burns, heat in _cells(config, sketch):
        size = config.fire.fire_types[y][x]
        if burns:
            texts[y][x].append(f"F{size}·{heat}", style="bold red")
        elif heat >= config.fire.num_fire_states - 1:
            texts[y][x].append(f"x{size}", style="dim")
        else:
            texts[y][x].append(f"f{size}", style="red")
    for n, (y, x) in enumerate(config.agent.agents):
        label, style = _agent(n, (y, x), sketch)
        texts[y][x].append(f"\n{label}" if texts[y][x] else label, style=style)
    for row in texts:
        table.add_row(*row)
    return table


def _agent(n: int, place: Cell, sketch: Sketch) -> tuple[str, str]:
    tank, target = sketch.suppressant[n], sketch.targets[n]
    if tank <= 0:
        return f"a{n + 1}", "dim cyan"
    label = f"A{n + 1}·{tank:g}"
    if target is None:
        return label, "bold cyan"
    return label + _arrow(place, target), "bold cyan"


def _arrow(place: Cell, target: Cell) -> str:
    """The direction, of eight, in which a cell lies."""
    down, right = target[0] - place[0], target[1] - place[1]
    return ARROWS[1 + (down > 0) - (down < 0)][1 + (right > 0) - (right < 0)]


def _characters(config: WildfireConfig, sketch: Sketch) -> Text:
    texts = _empty(config)
    for (y, x), burns, heat in _cells(config, sketch):
        burnt = heat >= config.fire.num_fire_states - 1
        mark = str(min(heat, 9)) if burns else "x" if burnt else "·"
        texts[y][x] = Text(mark, style="bold red" if burns else "dim")
    for n, (y, x) in enumerate(config.agent.agents):
        here = sketch.suppressant[n] > 0
        texts[y][x] = Text("A" if here else "a", "bold cyan" if here else "dim cyan")
    lines = [Text(" ").join(text or Text(" ") for text in row) for row in texts]
    return Text("\n").join(lines)


def _cells(config: WildfireConfig, sketch: Sketch):
    return zip(config.fire_cells, sketch.burning, sketch.intensity, strict=True)


def _empty(config: WildfireConfig) -> list[list[Text]]:
    columns = range(config.grid_width)
    return [[Text() for _ in columns] for _ in range(config.grid_height)]
