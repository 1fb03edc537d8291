"""How far something is: live on a terminal, elsewhere a plain line now and then."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from math import isfinite

from rich.console import Console, ConsoleOptions, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from plato.runs.train import Progress

PAUSE = 10.0
"""Seconds from one plain line to the next."""
BAR = 20
SHORTEST_BAR = 5
"""A bar of fewer columns says nothing."""


class Lines:
    """A bar with count, time and pace, and below it what else there is to say.

    Two lines, as one would be too long for a terminal of 80 columns.
    """

    def __init__(self, total: int) -> None:
        self.total, self.begun = total, time.monotonic()
        self.done, self.pace, self.news = 0, "", ""

    def show(self, done: int, pace: str = "", news: str = "") -> None:
        """What stands in the lines from now on."""
        self.done, self.pace, self.news = done, pace, news

    @property
    def seconds(self) -> float:
        """Since it was begun."""
        return time.monotonic() - self.begun

    def plain(self) -> str:
        """All of it but the bar, as one line."""
        parts = (self._count(), clock(self.seconds), self.pace, self.news)
        return "  ".join(part for part in parts if part)

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        count, rest = f"{self._count()} ", f" {clock(self.seconds)}  {self.pace}"
        room = options.max_width - len(count) - len(rest)
        if room < SHORTEST_BAR:
            yield Text(count + rest.lstrip())
        else:
            yield Text(count, end="")
            yield ProgressBar(self.total, self.done, width=min(room, BAR))
            yield Text(rest)
        if self.news:
            yield Text(self.news)

    def _count(self) -> str:
        # As wide from the first to the last, so that nothing moves.
        return f"{self.done:>{len(str(self.total))}}/{self.total}"


@contextmanager
def live_lines(out: Console, total: int) -> Iterator[Lines]:
    """Lines that are shown for as long as the context lasts."""
    lines = Lines(total)
    if out.is_interactive:
        with Live(lines, console=out) as live:
            try:
                yield lines
            except Exception:
                live.transient = True  # what is wrong is said in place of it
                raise
        return

    def tell() -> None:
        out.print(lines.plain(), markup=False, soft_wrap=True)

    with _now_and_then(tell):
        yield lines


@contextmanager
def _now_and_then(tell: Callable[[], None]) -> Iterator[None]:
    """Calls a function every few seconds, and at the end, if all went well."""
    over = threading.Event()

    def wait_and_tell() -> None:
        while not over.wait(PAUSE):
            tell()

    thread = threading.Thread(target=wait_and_tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    tell()


def clock(seconds: float) -> str:
    """As hours, minutes and seconds; a dash where it is not known."""
    return str(timedelta(seconds=int(seconds))) if isfinite(seconds) else "–"


def speed(training: Progress) -> str:
    """Of a training, once its second update has shown how long one takes."""
    known = isfinite(training.seconds_left)
    return f"{training.steps_per_second:,.0f} steps/s" if known else "– steps/s"
