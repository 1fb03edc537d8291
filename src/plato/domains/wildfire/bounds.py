"""What a wildfire setup can return at least and at most: the paper's bounds, and ours.

The paper's are its formulas as printed; some do not bound this environment. Those
called sound are proved to, for every configuration. `docs/bounds.md` has the proofs,
and says what is wrong where.
"""

from dataclasses import dataclass, fields
from typing import Any, Literal

from plato.domains.wildfire import counting, paper_bounds
from plato.domains.wildfire.config import WildfireConfig
from plato.domains.wildfire.integer_program import Maximum
from plato.domains.wildfire.limits import limits_of
from plato.errors import PlatoError

TIME_LIMIT = 20.0
"""Seconds for each program, of which a setup has five."""

TOLERANCE = 1e-6
"""To which the solver's numbers are taken to be exact."""


@dataclass(frozen=True)
class Formula:
    """What a bound is called and how it comes about."""

    side: Literal["lower", "upper"]
    label: str
    origin: Literal["paper", "sound"]
    text: str


FORMULAS = {
    "lower_paper": Formula(
        "lower",
        "paper",
        "paper",
        "⌊h / (int₀ + 1)⌋ · Σₓ r_burnout(x), each cell with its own int₀",
    ),
    "lower_sound": Formula(
        "lower",
        "sound",
        "sound",
        "least return of whole counts that obey the rules; no episode is below it",
    ),
    "upper_program": Formula(
        "upper",
        "paper IP",
        "paper",
        "Σ f · r · ρ of the cycles that maximise Σ f · r, constraints (3)–(6)",
    ),
    "upper_simple": Formula(
        "upper",
        "paper simple",
        "paper",
        "h / int₀ · r_putout · min(|N|, ⌈reachable fires / 2⌉), meant for size 1",
    ),
    "upper_sound": Formula(
        "upper",
        "sound",
        "sound",
        "largest return of whole counts that obey the rules; no episode is above it",
    ),
    "upper_sound_mean": Formula(
        "upper",
        "sound, mean",
        "sound",
        "the same of expected counts, with the probabilities; no policy's mean return "
        "is above it (independent noise)",
    ),
}


@dataclass(frozen=True)
class Bound:
    """A number, and whether the program behind it was solved to the end."""

    value: float
    finished: bool = True
    """False: the time was up or the program too large. The number is then one that the
    solution of the program cannot exceed (for a lower bound: fall below)."""


@dataclass(frozen=True)
class WildfireBounds:
    """All bounds of one configuration on the team's mean return of an episode."""

    lower_paper: Bound
    lower_sound: Bound
    upper_program: Bound
    upper_simple: Bound
    upper_sound: Bound
    upper_sound_mean: Bound

    @property
    def finished(self) -> bool:
        """Whether every program was solved to the end."""
        return all(getattr(self, f.name).finished for f in fields(self))

    @property
    def unproved(self) -> tuple[str, ...]:
        """The paper's bounds that claim more than is proved, of single episodes."""
        high = ("upper_program", "upper_simple")
        most, least = self.upper_sound.value, self.lower_sound.value
        names = [n for n in high if getattr(self, n).value < most - TOLERANCE]
        if self.lower_paper.value > least + TOLERANCE:
            names.insert(0, "lower_paper")
        return tuple(names)

    def to_json(self) -> dict[str, Any]:
        """Everything as plain data, each bound with its formula."""
        return {
            f.name: {
                "value": getattr(self, f.name).value,
                "finished": getattr(self, f.name).finished,
                "origin": FORMULAS[f.name].origin,
                "formula": FORMULAS[f.name].text,
                "proved": f.name not in self.unproved,
            }
            for f in fields(self)
        }


def wildfire_bounds(
    config: WildfireConfig, time_limit: float = TIME_LIMIT
) -> WildfireBounds:
    """Every bound of a configuration, with at most so many seconds for each program."""
    if not time_limit > 0:
        raise PlatoError(f"The time limit must be more than 0 s, not {time_limit:g}.")
    limits = limits_of(config)
    fuel = config.fire.initial_fuel if config.stochastic.fire_fuel else None
    episode = counting.upper_bound(config, mean=False, time_limit=time_limit)
    mean = counting.upper_bound(config, mean=True, time_limit=time_limit)
    loss = counting.lower_bound(config, mean=False, time_limit=time_limit)
    cycles = paper_bounds.program_upper_bound(limits, fuel, time_limit)
    return WildfireBounds(
        lower_paper=Bound(paper_bounds.lower_bound(limits)),
        lower_sound=Bound(0.0 - loss.at_most, loss.finished),
        upper_program=_bound(cycles),
        upper_simple=Bound(paper_bounds.simple_upper_bound(limits)),
        upper_sound=_bound(episode),
        # What no episode exceeds, no mean does.
        upper_sound_mean=_bound(min(mean, episode, key=lambda known: known.at_most)),
    )


def _bound(known: Maximum) -> Bound:
    return Bound(known.at_most + 0.0, known.finished)  # + 0.0: no -0.0
