"""`plato tune`: search a method's settings."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from plato.cli.clusters import check_cluster
from plato.cli.console import console, set_up_jax
from plato.errors import PlatoError
from plato.learners.config import MethodName

if TYPE_CHECKING:
    from rich.console import Console

    from plato.cli.live import Lines
    from plato.tuning.study import Run, Standing


@dataclass(frozen=True, kw_only=True)
class Tune:
    """Search the settings of a method with the paper's spaces, budget and objective.

    The same command again goes on where it was stopped, to as many trials as are asked
    for then.
    """

    method: MethodName = "plato"
    """Whose settings."""
    trials: int = 50
    """Trials in all."""
    setup: str = "wildfire-3x3-S3"
    """What trials are trained and scored on."""
    episodes: int = 2000
    """Episodes that a training is long."""
    validation: int = 15
    """Episodes that score it, on seeds that are never reported."""
    trainings: int = 1
    """Trainings of a trial, each with another seed; its score is their mean."""
    together: int = 8
    """Trials proposed at once; on a GPU those of one shape are one program."""
    seed: int = 42
    """Of the search, and of the first training of every trial."""
    out: Path | None = None
    """The folder of the search (default: tuning/ and the method)."""
    engine: Literal["local", "ray"] = "local"
    """Where trials are done: here, or as tasks of a Ray cluster (extra `cluster`)."""
    address: str | None = None
    """Of a Ray cluster; without it, one is started on this machine."""
    gpus: float = 0.0
    """With ray: what each trial is given of a GPU."""

    when_stopped: ClassVar[str] = "What is done is kept; the same command goes on."
    """Said after Ctrl-C."""
    leaves_threads: ClassVar[bool] = True
    """Whether trials may still be compiled then."""

    def run(self) -> int:
        set_up_jax()
        from plato.cli.live import live_lines
        from plato.tuning.study import Plan, search

        if self.trials < 1 or self.together < 1:
            raise PlatoError("--trials and --together must be at least 1.")
        out = console()
        settings = asdict(self)
        plan = Plan(**{n: settings[n] for n in Plan.__dataclass_fields__})
        folder = self.out or Path("tuning") / self.method
        check_cluster(self.engine, self.address, self.gpus, "trials")
        with self._scores() as scores, live_lines(out, self.trials) as lines:
            shown = Shown(out, lines)
            standing = search(
                plan,
                folder,
                self.trials,
                self.together,
                shown.report,
                scores,
                shown.says,
            )
        if not standing.found:
            raise PlatoError(f"{folder}: no trial came to a score.")
        found = ", ".join(f"{n} {v:.3g}" for n, v in standing.found.items())
        out.print(f"Best of {standing.done}: {standing.best:.2f} with {found}")
        out.print(
            f"Train with it: plato train --config {folder / 'best.toml'}",
            soft_wrap=True,
        )
        return 0

    def _scores(self) -> "AbstractContextManager[Run | None]":
        if self.engine == "local":
            return nullcontext(None)
        from plato.tuning.cluster import scores_of_cluster

        return scores_of_cluster(self.address, self.gpus)


class Shown:
    """How a search goes, shown live, with a line for each trial that has ended."""

    def __init__(self, out: "Console", lines: "Lines") -> None:
        self.out, self.lines = out, lines
        self.before: int | None = None
        """Trials that an earlier search had done: they took no time in this one."""

    def report(self, standing: "Standing") -> None:
        from plato.cli.live import clock

        if self.before is None:
            self.before = standing.done - len(standing.last)
        best = f"best {standing.best:.1f}" if standing.found else "best –"
        if standing.last:
            last = ", ".join(f"{score:.1f}" for score in standing.last)
            self.says(f"{standing.done}/{self.lines.total}  {best}  just now {last}")
        running = _running(standing)
        news = f"{best}  {running}" if running else best
        eta = f"ETA {clock(self._seconds_left(standing))}"
        self.lines.show(standing.done, eta, news)

    def says(self, line: str) -> None:
        self.out.print(line, markup=False, soft_wrap=True)

    def _seconds_left(self, standing: "Standing") -> float:
        begun = standing.share * len(standing.running)
        here = standing.done - (self.before or 0) + begun
        left = self.lines.total - standing.done - begun
        return self.lines.seconds * left / here if here else float("nan")


def _running(standing: "Standing") -> str:
    """Which trials run, and how far they are."""
    if not standing.running:
        return ""
    first, last = standing.running[0], standing.running[-1]
    numbers = ", ".join(map(str, standing.running))
    if last - first == len(standing.running) - 1 > 1:
        numbers = f"{first}–{last}"
    return f"trial(s) {numbers}: {100 * standing.share:.0f} %"
