"""A wildfire setup drawn for the terminal."""

from rich.console import Group
from rich.table import Table
from rich.text import Text

from plato.domains.wildfire.config import WildfireConfig

LARGEST_DRAWN = 40


def draw_grid(config: WildfireConfig) -> Group | Text:
    """The grid at the start: fires with size and intensity, agents with their tanks."""
    if max(config.grid_height, config.grid_width) > LARGEST_DRAWN:
        return Text(
            f"{config.grid_height}×{config.grid_width} is too large to draw here."
        )
    table = Table(show_lines=True, show_header=False, padding=(0, 1))
    for _ in range(config.grid_width):
        table.add_column(justify="center", min_width=5)
    for y in range(config.grid_height):
        table.add_row(*(_cell(config, y, x) for x in range(config.grid_width)))
    legend = (
        "F2·1: burning, size 2, intensity 1    f2: can burn, not lit    "
        "A1·2: agent 1 with 2 suppressant"
    )
    return Group(table, Text(legend, style="dim"))


def _cell(config: WildfireConfig, y: int, x: int) -> Text:
    fire, text = config.fire, Text()
    size = fire.fire_types[y][x]
    if size and fire.lit[y][x]:
        text.append(f"F{size}·{fire.ignition_temp[y][x]}", style="bold red")
    elif size:
        text.append(f"f{size}", style="red")
    tanks = config.agent.initial_suppressants
    for n, place in enumerate(config.agent.agents):
        if place == (y, x):
            label = f"A{n + 1}·{tanks[n]}"
            text.append(f"\n{label}" if text else label, style="bold cyan")
    return text
