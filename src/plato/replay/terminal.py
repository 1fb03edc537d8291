"""A recording in the terminal, moment by moment."""

from collections.abc import Iterator

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from plato.domains.wildfire.config import WildfireConfig
from plato.domains.wildfire.drawing import Sketch, draw_grid
from plato.evaluation.metrics import METRICS
from plato.replay.recording import Recording
from plato.replay.wildfire import events_of
from plato.replay.words import (
    choice_in_words,
    happened,
    moment_in_words,
    pointing_in_words,
)

MOST_AGENTS = 8
"""Agents whose decisions are listed; more would not fit on a screen."""


def frames(
    recording: Recording, config: WildfireConfig, title: str, width: int
) -> Iterator[RenderableType]:
    """Every moment of an episode, from the start to the end."""
    events = events_of(recording, config)
    for time in range(recording.steps + 1):
        told = happened(config, events.at(time)) if time else "the start"
        yield Group(
            Text.assemble((title, "bold"), f"   step {time} of {recording.steps}"),
            draw_grid(config, width, sketch(recording, config, time)),
            Text(f"{moment_in_words(recording, time)}; {told}"),
            _metrics(recording, time),
            _decisions(recording, config, time),
        )


def sketch(recording: Recording, config: WildfireConfig, time: int) -> Sketch:
    """What is drawn of a moment, with what each agent is about to fight."""
    state, cells = recording.sights.state, config.fire_cells
    team = len(config.agent.agents)
    targets: list[tuple[int, int] | None] = [None] * team
    if time < recording.steps:
        actions = recording.decisions.actions[time, :team].tolist()
        targets = [cells[action - 1] if action else None for action in actions]
    return Sketch(
        burning=state.burning[time, : len(cells)].tolist(),
        intensity=state.intensity[time, : len(cells)].tolist(),
        suppressant=state.suppressant[time, :team].tolist(),
        targets=targets,
    )


def _metrics(recording: Recording, time: int) -> Text:
    metrics = recording.metrics
    known = [name for name in METRICS if name in metrics]
    parts = [f"{METRICS[name].label} {metrics[name][time]:.4g}" for name in known]
    return Text("   ".join(parts), style="dim")


def _decisions(
    recording: Recording, config: WildfireConfig, time: int
) -> RenderableType:
    team = len(config.agent.agents)
    if time == recording.steps or team > MOST_AGENTS:
        return Text("")
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for name in ("agent", "does", "where it points"):
        table.add_column(name, no_wrap=True)
    for agent in range(team):
        here = bool(recording.sights.present[time, agent])
        action = int(recording.decisions.actions[time, agent])
        does = choice_in_words(config, action) if here else "away"
        points = pointing_in_words(recording, config, time, agent)
        table.add_row(str(agent + 1), does, points)
    return table
