"""A replay as a picture: a strip of moments (PNG), or all (GIF). Extra: plots."""

import io
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from plato.domains.wildfire.config import WildfireConfig
from plato.errors import PlatoError
from plato.files import write_bytes
from plato.replay.page import Replay
from plato.replay.recording import Recording
from plato.replay.words import moment_in_words

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

Colour: TypeAlias = tuple[int, int, int]
Point: TypeAlias = tuple[float, float]

STRIP = 6
"""Moments in a strip, evenly spread from the start to the end."""
MOST_FRAMES = 120
"""Frames of an animation; longer episodes leave steps out."""
FRAME_MS, LAST_MS = 250, 2000
FINER = 2
"""Drawn so many times larger and then reduced, for smooth edges."""
FIELD = 300
"""Pixels that the longer side of a grid may take."""
PAD, HEAD, FOOT = 14, 30, 26

PAPER, INK, SOFT = (255, 255, 255), (31, 35, 40), (90, 98, 108)
GROUND, BRUSH = (239, 237, 232), (180, 173, 161)
BURNT, BURNT_MARK = (203, 198, 190), (103, 97, 90)
COOL, HOT, WATER = (255, 225, 166), (207, 58, 12), (29, 94, 168)


def needs_pillow() -> Any:
    """Pillow, or what to do about its absence."""
    try:
        import PIL.Image
        import PIL.ImageDraw
        import PIL.ImageFont
    except ImportError:
        raise PlatoError(
            "Pictures need Pillow: pip install 'plato-marl[plots]'."
        ) from None
    return PIL


def write_strip(path: Path, replay: Replay) -> None:
    """Writes a few moments beside each other, a row for each policy."""
    buffer = io.BytesIO()
    strip(replay).save(buffer, format="PNG", optimize=True)
    write_bytes(path, buffer.getvalue())


def write_animation(path: Path, replay: Replay) -> None:
    """Writes the episode as a moving picture, policies beside each other."""
    first, *others = animation(replay)
    buffer = io.BytesIO()
    first.save(
        buffer,
        format="GIF",
        save_all=True,
        append_images=others,
        duration=[FRAME_MS] * len(others) + [LAST_MS],
        loop=0,
        optimize=True,
    )
    write_bytes(path, buffer.getvalue())


def strip(replay: Replay) -> "Image":
    """A row of moments for each policy."""
    config, rows = replay.setup.config, []
    for recording in replay.recordings:
        shown = min(STRIP, recording.steps + 1)
        parts = max(shown - 1, 1)
        times = [round(i * recording.steps / parts) for i in range(shown)]
        rows.append([panel(recording, config, time) for time in times])
    return _tiled(rows)


def animation(replay: Replay) -> "list[Image]":
    """All moments, or every second, third, … of a long episode, and the last."""
    steps = max(recording.steps for recording in replay.recordings)
    stride = -(-(steps + 1) // MOST_FRAMES)
    times = sorted({*range(0, steps + 1, stride), steps})
    config = replay.setup.config
    frames = [
        _tiled([[panel(r, config, min(time, r.steps)) for r in replay.recordings]])
        for time in times
    ]
    # One palette, and no dither: what stands still is then not stored again.
    colours = strip(replay).quantize(64)
    plain = needs_pillow().Image.Dither.NONE
    return [frame.quantize(palette=colours, dither=plain) for frame in frames]


def panel(recording: Recording, config: WildfireConfig, time: int) -> "Image":
    """One moment: the policy and its return, the field, and what is there."""
    pillow = needs_pillow()
    side = max(FIELD // max(config.grid_height, config.grid_width), 4)
    width = max(side * config.grid_width, 220) + 2 * PAD
    height = side * config.grid_height + HEAD + FOOT + PAD
    image = pillow.Image.new("RGB", (FINER * width, FINER * height), PAPER)
    draw = pillow.ImageDraw.Draw(image)
    gain = float(recording.metrics["return"][time])
    figure = f"return {gain:.1f}"
    room = FINER * (width - 3 * PAD) - draw.textlength(figure, font=_font(FINER * 15))
    name = _cut(draw, recording.policy, _font(FINER * 15), room)
    _text(draw, (PAD, HEAD / 2), name, 15, INK, "lm")
    _text(draw, (width - PAD, HEAD / 2), figure, 15, INK, "rm")
    below = f"step {time}: {moment_in_words(recording, time)}"
    _text(draw, (PAD, height - FOOT / 2 - PAD / 2), below, 12, SOFT, "lm")
    left = (width - side * config.grid_width) / 2
    _Field(draw, config, side, left, HEAD + PAD / 2).draw(recording, time)
    return image.resize((width, height), pillow.Image.Resampling.LANCZOS)


@dataclass(frozen=True)
class _Field:
    """Draws one grid at a place of an image."""

    drawing: "ImageDraw"
    config: WildfireConfig
    side: float
    left: float
    top: float

    def draw(self, recording: Recording, time: int) -> None:
        for y in range(self.config.grid_height):
            for x in range(self.config.grid_width):
                self._box(y, x, GROUND)
        state = recording.sights.state
        for row, (y, x) in enumerate(self.config.fire_cells):
            burns, heat = state.burning[time, row], int(state.intensity[time, row])
            self._cell(y, x, bool(burns), heat)
        if time < recording.steps:
            for agent, action in enumerate(recording.decisions.actions[time].tolist()):
                if action:
                    self._fight(agent, self.config.fire_cells[action - 1])
        for agent, tank in enumerate(state.suppressant[time].tolist()):
            self._agent(agent, tank)

    def _cell(self, y: int, x: int, burns: bool, heat: int) -> None:
        hottest = self.config.fire.num_fire_states - 2
        cx, cy = self._middle((y, x))
        if burns:
            part = (heat - 1) / max(hottest - 1, 1)
            self._box(y, x, _mixed(COOL, HOT, part))
            if self.side >= 40:
                ink = PAPER if part > 0.6 else INK
                size = self.config.fire.fire_types[y][x]
                above = (cx, cy - self.side * 0.06)
                _text(self.drawing, above, str(heat), self.side * 0.34, ink, "mm")
                corner = (cx - self.side * 0.4, cy - self.side * 0.32)
                _text(self.drawing, corner, f"size {size}", self.side * 0.13, ink, "lm")
        elif heat > hottest:
            self._box(y, x, BURNT)
            arm = self.side * 0.2
            for sign in (1, -1):
                ends = [(cx - arm, cy - sign * arm), (cx + arm, cy + sign * arm)]
                self._line(ends, BURNT_MARK, max(self.side * 0.03, 0.75))
        else:
            dot = max(self.side * 0.06, 0.75)
            self._disc((cx, cy), dot, BRUSH)

    def _fight(self, agent: int, cell: tuple[int, int]) -> None:
        ((x, y), _), (tx, ty) = self._place(agent), self._middle(cell)
        ends = [(x, y), (x + (tx - x) * 0.72, y + (ty - y) * 0.72)]
        thick = max(self.side * 0.04, 1)
        self._line(ends, PAPER, thick + 2)
        self._line(ends, INK, thick)
        self._disc(ends[1], thick * 1.6, INK)

    def _agent(self, agent: int, tank: float) -> None:
        at, radius = self._place(agent)
        self._disc(at, radius + 1.5, PAPER)
        self._disc(at, radius, WATER if tank > 0 else SOFT)
        if tank <= 0:
            self._disc(at, radius * 0.8, PAPER)
        if self.side >= 40:
            ink = PAPER if tank > 0 else SOFT
            gap = radius * 0.4
            _text(self.drawing, at, str(agent + 1), radius * 1.1, ink, "mm")
            for unit in range(round(min(tank, 8))):
                x = at[0] + (unit - (min(tank, 8) - 1) / 2) * gap
                self._disc((x, at[1] + radius + gap), gap * 0.4, WATER)

    def _place(self, agent: int) -> tuple[Point, float]:
        """Where it stands, and its radius: in a row, below the fire if there is one."""
        cell = self.config.agent.agents[agent]
        crowd = [n for n, place in enumerate(self.config.agent.agents) if place == cell]
        x, y = self._middle(cell)
        burnable = self.config.fire.fire_types[cell[0]][cell[1]] > 0
        part = min(0.27 if burnable else 0.45, 0.9 / len(crowd)) * self.side
        shift = (crowd.index(agent) - (len(crowd) - 1) / 2) * part
        below = self.side * 0.3 if burnable else 0
        return (x + shift, y + below), max(part * 0.44, 2)

    def _middle(self, cell: tuple[int, int]) -> Point:
        y, x = cell
        return self.left + (x + 0.5) * self.side, self.top + (y + 0.5) * self.side

    def _box(self, y: int, x: int, colour: Colour) -> None:
        gap = 1 if self.side >= 16 else 0.25
        left, top = self.left + x * self.side, self.top + y * self.side
        inner = (left + gap, top + gap, left + self.side - gap, top + self.side - gap)
        self.drawing.rounded_rectangle(
            _scaled(inner), radius=FINER * self.side * 0.08, fill=colour
        )

    def _disc(self, at: Point, radius: float, colour: Colour) -> None:
        x, y = at
        box = (x - radius, y - radius, x + radius, y + radius)
        self.drawing.ellipse(_scaled(box), fill=colour)

    def _line(self, ends: list[Point], colour: Colour, thick: float) -> None:
        flat = _scaled(tuple(part for end in ends for part in end))
        self.drawing.line(flat, fill=colour, width=max(round(FINER * thick), 1))


def _tiled(rows: "list[list[Image]]") -> "Image":
    pillow = needs_pillow()
    wide = max(sum(image.width for image in row) for row in rows)
    high = sum(row[0].height for row in rows)
    whole = pillow.Image.new("RGB", (wide, high), PAPER)
    top = 0
    for row in rows:
        left = 0
        for image in row:
            whole.paste(image, (left, top))
            left += image.width
        top += row[0].height
    return whole


def _text(
    draw: "ImageDraw", at: Point, text: str, size: float, colour: Colour, anchor: str
) -> None:
    draw.text(
        _scaled(at), text, font=_font(round(FINER * size)), fill=colour, anchor=anchor
    )


def _cut(draw: "ImageDraw", text: str, font: Any, room: float) -> str:
    """A name, or as much of it as there is room for."""
    if draw.textlength(text, font=font) <= room:
        return text
    while text and draw.textlength(f"{text}...", font=font) > room:
        text = text[:-1]
    return f"{text}..."


@cache
def _font(size: int) -> Any:
    return needs_pillow().ImageFont.load_default(max(size, 1))


def _mixed(low: Colour, high: Colour, part: float) -> Colour:
    red, green, blue = (
        round(a + (b - a) * part) for a, b in zip(low, high, strict=True)
    )
    return red, green, blue


def _scaled(numbers: Any) -> Any:
    return tuple(FINER * number for number in numbers)
