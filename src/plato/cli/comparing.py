"""`plato compare`: any runs and policies, by either protocol, in any format."""

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.console import Console
from tyro.conf import Positional

from plato.cli.commands import Repeated
from plato.cli.console import console, set_up_jax
from plato.errors import PlatoError

if TYPE_CHECKING:
    from plato.domains.setups import Setup
    from plato.evaluation.comparison import Comparison
    from plato.evaluation.contestants import Contestant
    from plato.evaluation.protocols import Curve, Examiner

KNOWN, SOLVE = "known", "solve"
Format = Literal["console", "markdown", "latex", "csv", "json", "marl-eval"]


@dataclass(frozen=True)
class Compare:
    """Compare runs and policies: `plato compare runs/a runs/b --policy weakest`."""

    runs: Positional[tuple[str, ...]] = ()
    """Folders of runs, each one method: RUN, or NAME=RUN; the trainings of several
    folders with the same NAME belong to one method."""
    policy: Repeated[str] = ()
    """A policy as it is: a rule's name (see `plato evaluate --help`) or the path of a
    checkpoint; may be repeated."""
    setup: Repeated[str] = ()
    """Where to compare (default: what all runs were trained on); one that a run was not
    trained on is zero-shot transfer; may be repeated."""
    zero_shot: bool = False
    """Compare on the paper's transfer setups of the grids the runs were trained on."""
    protocol: Literal["field", "paper"] = "field"
    """field: trainings are the unit, checkpoints chosen on validation seeds, bootstrap
    intervals; paper: three checkpoints of each training, paired tests over seeds."""
    noise: Literal["protocol", "independent", "paper"] = "protocol"
    """The protocol's own (field: independent, paper: paper), or one of the two."""
    actions: Literal["own", "sampled", "greedy"] = "own"
    """How trained policies take them: as each method's source does (PLATO draws, the
    baselines take the likeliest), drawn wherever a policy can, or the likeliest."""
    metric: Repeated[str] = ()
    """return, reward_per_fight, noop_percent, burnouts, putouts, zero_suppressant,
    new_fires (default: all); the first one is aggregated; may be repeated."""
    episodes: int | None = None
    """Episodes of each policy (default: the protocol's, field 1000, paper 50)."""
    seed: int = 200
    """Seed of the first episode; the others follow it."""
    beside_paper: Literal["no", "main", "ablation"] = "no"
    """Put the paper's numbers below ours: of its main tables, or of its ablation."""
    optimum: Repeated[str] = ()
    """Give scores as shares of the best possible return: `known`, as it was found for
    the setups that come with PLATO; `solve`, find it now; or SETUP=NUMBER; may be
    repeated."""
    format: Format = "console"
    """How to print the comparison."""
    out: Path | None = None
    """A file to write it to instead."""
    plots: Path | None = None
    """A folder to draw plots into."""

    def run(self) -> int:
        set_up_jax()
        from plato.evaluation.comparison import check_metrics, compare
        from plato.evaluation.protocols import Examiner, protocol
        from plato.files import writable

        check_metrics(self.metric)
        contestants = self._contestants()
        setups = self._setups(contestants)
        examiner = Examiner(
            protocol(
                self.protocol,
                noise=None if self.noise == "protocol" else self.noise,
                actions=self.actions,
                seed=self.seed,
                episodes=self.episodes,
            )
        )
        optimum = _optima(self.optimum, setups)
        if self.out is not None:
            writable(self.out)
        with Console(stderr=True).status("") as status:
            comparison = compare(
                contestants,
                setups,
                examiner,
                metrics=self.metric,
                optimum=optimum,
                report=lambda line: status.update(f"playing {line}"),
            )
            curves = {}
            if self.plots is not None or self.format == "marl-eval":
                status.update("playing every checkpoint")
                curves = _curves(examiner, contestants, setups)
        self._show(comparison, curves)
        if self.plots is not None:
            _draw(comparison, curves, self.plots)
        return 0

    def _contestants(self) -> "list[Contestant]":
        from plato.evaluation.contestants import Contestant
        from plato.evaluation.named import called
        from plato.runs.trainings import contestants_of

        if not self.runs and not self.policy:
            raise PlatoError("Name at least one run or one --policy to compare.")
        named = map(called, self.policy)
        given = [Contestant(name, policy=policy) for name, policy in named]
        return contestants_of(self.runs) + given

    def _setups(self, contestants: "list[Contestant]") -> "list[Setup]":
        from plato.domains.setups import distinct, load_setup
        from plato.evaluation.contestants import common_setups, transfer_setups

        if self.zero_shot and self.setup:
            raise PlatoError("Give --zero-shot or --setup, not both.")
        if self.zero_shot:
            names = transfer_setups(contestants)
        else:
            names = list(self.setup) or common_setups(contestants)
        return distinct([load_setup(name) for name in names])

    def _show(
        self,
        comparison: "Comparison",
        curves: "dict[tuple[str, str], list[Curve]]",
    ) -> None:
        from plato.evaluation.export import to_csv, to_json, to_marl_eval
        from plato.evaluation.layout import report
        from plato.evaluation.rendering import console_tables, latex, markdown
        from plato.files import write_text

        beside = None if self.beside_paper == "no" else self.beside_paper
        if self.format == "console" and self.out is None:
            out = console()
            out.print(console_tables(report(comparison, beside), out.width))
            return
        if self.format == "console":
            text = io.StringIO()
            page = Console(file=text, width=console().width, highlight=False)
            page.print(console_tables(report(comparison, beside), page.width))
            content = text.getvalue()
        elif self.format == "markdown":
            content = markdown(report(comparison, beside))
        elif self.format == "latex":
            content = latex(report(comparison, beside))
        elif self.format == "csv":
            content = to_csv(comparison)
        elif self.format == "json":
            content = _json(to_json(comparison))
        else:
            content = _json(to_marl_eval(comparison, curves))
        if self.out is None:
            print(content, end="")
        else:
            write_text(self.out, content)


def _curves(
    examiner: "Examiner", contestants: "list[Contestant]", setups: "list[Setup]"
) -> "dict[tuple[str, str], list[Curve]]":
    return {
        (contestant.name, setup.name): examiner.curves(contestant, setup)
        for contestant in contestants
        for setup in setups
    }


def _draw(
    comparison: "Comparison",
    curves: "dict[tuple[str, str], list[Curve]]",
    folder: Path,
) -> None:
    from plato.evaluation.plots import figures
    from plato.files import write_bytes

    drawn = figures(comparison, curves)
    for name, figure in drawn.items():
        for kind in ("png", "pdf"):
            picture = io.BytesIO()
            figure.savefig(picture, format=kind, dpi=300)
            write_bytes(folder / f"{name}.{kind}", picture.getvalue())
    line = f"{len(drawn)} plots, as PNG and PDF: {folder}"
    Console(stderr=True).print(line, style="dim", soft_wrap=True, highlight=False)


def _optima(given: tuple[str, ...], setups: "list[Setup]") -> dict[str, float]:
    from plato.domains.wildfire.optimum.known import known_optimum
    from plato.domains.wildfire.optimum.policy import solve_exactly

    numbers = _numbers([pair for pair in given if pair not in (KNOWN, SOLVE)])
    for setup in setups:
        if setup.name in numbers:
            continue
        known = known_optimum(setup) if KNOWN in given else None
        if known is not None:
            numbers[setup.name] = known
        elif SOLVE in given:
            numbers[setup.name] = float(solve_exactly(setup.config).value)
        elif KNOWN in given:
            raise PlatoError(
                f"The optimum of {setup.name} is not known; find it with "
                f"--optimum solve, or leave --optimum away."
            )
    return numbers


def _numbers(pairs: list[str]) -> dict[str, float]:
    numbers = {}
    for pair in pairs:
        name, equals, number = pair.rpartition("=")
        try:
            numbers[name] = float(number)
        except ValueError:
            equals = ""
        if not equals:
            raise PlatoError(
                f"--optimum takes known, solve or SETUP=NUMBER, not {pair!r}."
            )
    return numbers


def _json(data: object) -> str:
    return json.dumps(data, indent=1, allow_nan=False) + "\n"
