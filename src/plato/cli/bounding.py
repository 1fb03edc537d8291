"""`plato bounds`: what a setup can return at least and at most."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text
from tyro.conf import Positional

from plato.cli.console import console, set_up_jax
from plato.errors import PlatoError

if TYPE_CHECKING:
    from plato.domains.setups import Setup
    from plato.domains.wildfire.bounds import WildfireBounds

UNPROVED = "†"


@dataclass(frozen=True)
class Bounds:
    """Bound what setups can return: `plato bounds wildfire-3x3-S2`."""

    setup: Positional[tuple[str, ...]]
    """Setups: names (see `plato setups`) or .toml files."""
    time_limit: float = 20.0
    """Seconds for each of a setup's five programs; what is known by then is a bound."""
    solve: bool = False
    """Also find the exact optimum, which lies between them (see `plato solve`)."""
    out: Path | None = None
    """Where to write the bounds as JSON."""

    def run(self) -> int:
        from plato import __version__
        from plato.domains.setups import load_setup
        from plato.domains.wildfire.bounds import wildfire_bounds
        from plato.files import writable, write_json

        if not self.setup:
            raise PlatoError("Name at least one setup, as in `plato bounds NAME`.")
        setups = [load_setup(name) for name in self.setup]
        if self.out is not None:
            writable(self.out)
        found = [(s.name, wildfire_bounds(s.config, self.time_limit)) for s in setups]
        optima = _optima(setups) if self.solve else None
        out = console()
        show_bounds(out, found, optima)
        if self.out is not None:
            rows = [{"setup": name} | bounds.to_json() for name, bounds in found]
            if optima is not None:
                for row in rows:
                    row["optimum"] = optima[row["setup"]]
            write_json(self.out, {"plato": __version__, "bounds": rows})
            out.print(f"Every bound: {self.out}", style="dim", soft_wrap=True)
        return 0


def _optima(setups: "list[Setup]") -> dict[str, float]:
    set_up_jax()
    from plato.domains.wildfire.optimum.policy import solve_exactly

    return {setup.name: float(solve_exactly(setup.config).value) for setup in setups}


def show_bounds(
    out: Console,
    found: "list[tuple[str, WildfireBounds]]",
    optima: dict[str, float] | None = None,
) -> None:
    """A row for each setup, then a line for each formula and each mark."""
    from plato.domains.wildfire.bounds import FORMULAS
    from plato.evaluation.fitting import table_in_parts

    labels = [
        "",
        *(f"{formula.side}\n{formula.label}" for formula in FORMULAS.values()),
    ]
    labels += ["exact\noptimum"] if optima is not None else []
    rows = [
        [Text(setup), *(Text(_cell(bounds, name)) for name in FORMULAS)]
        + ([Text(f"{optima[setup]:.2f}")] if optima is not None else [])
        for setup, bounds in found
    ]
    out.print(table_in_parts(labels, [rows], out.width))
    notes = {f"{f.side}, {f.label}": f.text for f in FORMULAS.values()}
    if any(bounds.unproved for _, bounds in found):
        notes[UNPROVED] = "claims more than is proved of single episodes"
    if not all(bounds.finished for _, bounds in found):
        notes["≤ ≥"] = (
            "a program too large, or not solved in time: it gives no more (a lower "
            "bound: no less) than this, so what is sound stays sound"
        )
    below = Table.grid(padding=(0, 1))
    for name, text in notes.items():
        below.add_row(name, text, style="dim")
    out.print(below)


def _cell(bounds: "WildfireBounds", name: str) -> str:
    bound = getattr(bounds, name)
    unfinished = "≥ " if name.startswith("lower") else "≤ "
    mark = UNPROVED if name in bounds.unproved else " "
    return f"{'' if bound.finished else unfinished}{bound.value:z.2f}{mark}"
