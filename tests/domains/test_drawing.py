"""A wildfire in the terminal, in whatever room there is."""

from dataclasses import replace

from rich.console import Console

from plato.domains.setups import load_setup
from plato.domains.wildfire.drawing import Sketch, draw_grid, start_of

CONFIG = load_setup("wildfire-3x3-S3").config


def drawn(width: int, sketch: Sketch | None = None) -> str:
    console = Console(width=width)
    with console.capture() as captured:
        console.print(draw_grid(CONFIG, width, sketch))
    return captured.get()


def test_fires_and_agents_are_told_apart():
    start = start_of(CONFIG)
    now = replace(
        start,
        burning=[True, False, False, True],
        intensity=[3, 0, 4, 1],
        suppressant=[2, 0, 1.5],
        targets=[(0, 1), None, (2, 1)],
    )
    text = drawn(80, now)
    for mark in ("F1·3", "f2", "x1", "F2·1", "A1·2→", "a2", "A3·1.5←"):
        assert mark in text


def test_a_narrow_terminal_gets_a_character_for_each_cell():
    text = drawn(20)
    assert text.splitlines()[0].split() == ["A", "1"]
    assert text.splitlines()[1].split() == ["2", "A", "1"]
    assert "too large" in " ".join(drawn(5).split())
