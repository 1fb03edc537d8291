"""A store as the sections of a report: the paper's tables beside ours, and our own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from plato.domains.setups import load_setup
from plato.domains.wildfire.optimum.known import known_optimum
from plato.evaluation.comparison import Comparison, compare
from plato.evaluation.contestants import TRANSFER, grid_of, level_of
from plato.evaluation.layout import BesidePaper, Report, report
from plato.evaluation.metrics import METRICS
from plato.evaluation.protocols import Protocol
from plato.experiments import suite
from plato.experiments.findings import (
    against_given,
    first_over_others,
    openness_events,
    shares_of_optimum,
    significant_best,
)
from plato.experiments.recorded import Done, Recorded, contestants, results

TRANSFERRED = ("return", "noop_percent", "burnouts", "putouts")
"""The metrics of the paper's zero-shot tables."""


Kind: TypeAlias = Literal["native", "planner", "general", "unseen", "other"]
"""All rows at home; these beside the planner; the generalist at home, and where nobody
was trained; the rest."""


@dataclass(frozen=True)
class Section:
    """A part of a report: tables with what has to be said about them."""

    title: str
    text: str
    report: Report
    kind: Kind = "other"
    missing: tuple[str, ...] = ()
    """Rows that are not in it because cells of theirs are not done."""
    comparison: Comparison | None = field(default=None, repr=False)


def sections(found: Sequence[Done], protocol: Protocol) -> list[Section]:
    """All sections that what is done by a protocol allows."""
    order = [row.name for row in suite.in_order()]
    own = sorted(
        (one for one in found if one.cell.protocol == protocol),
        key=lambda one: order.index(one.cell.row.name),
    )
    specialists = [one for one in own if len(one.cell.trained_on) < 2]
    made = [
        native := _native(specialists, protocol, "methods", "Native setups", "main"),
        *_of(native),
        _beside_planner(specialists, protocol),
        *_transfers(specialists, protocol, "methods", "main"),
        ablation := _native(
            _renamed(specialists), protocol, "ablation", "Ablation", "ablation"
        ),
        *_tested("Ablation tested", ablation),
        *_transfers(_renamed(specialists), protocol, "ablation", "ablation"),
        forms := _compared(
            _native(specialists, protocol, "switches", "What each switch buys", None)
        ),
        *_tested("Each form tested", forms),
        *_generalist(own, protocol),
    ]
    return [section for section in made if section is not None]


def _of(native: Section | None) -> list[Section]:
    """What else can be said about the native setups."""
    if native is None or native.comparison is None:
        return []
    made = {
        "Distance to the optimum": shares_of_optimum(native.comparison),
        "Who is significantly best": significant_best(native.comparison),
        "Against the given policies": against_given(native.comparison),
        "Openness events": openness_events(native.comparison),
    }
    found = [Section(title, "", made) for title, made in made.items() if made]
    return [*found, *_tested("Methods tested", native)]


def _compared(section: Section | None) -> Section | None:
    """A section, if several rows of it were trained; what one has alone is elsewhere,
    and there is nothing of the paper's beside it."""
    if section is None or section.comparison is None:
        return None
    return section if len(section.comparison.trained) > 1 else None


def _tested(title: str, section: Section | None) -> list[Section]:
    """The first row of a section against each of the others."""
    if section is None or section.comparison is None:
        return []
    made = first_over_others(section.comparison)
    return [Section(title, "", made)] if made else []


def _native(
    found: Sequence[Done],
    protocol: Protocol,
    part: suite.Part,
    title: str,
    paper: BesidePaper | None,
) -> Section | None:
    names = _names(part)
    return _section(
        found,
        protocol,
        names=names,
        title=title,
        text="Trained and tested on the same setup.",
        fits=lambda one, setup: (
            setup in one.cell.trained_on
            or (not one.cell.trained_on and paper == "main")
        ),
        setups=suite.NATIVE,
        metrics=tuple(METRICS),
        paper=paper,
        kind="native" if part == "methods" else "other",
    )


def _beside_planner(found: Sequence[Done], protocol: Protocol) -> Section | None:
    """Methods beside a planner that knows the rules: no rival, but a measure."""
    methods = [row.name for row in suite.ROWS["methods"]]
    if all(one.cell.row.name != suite.PLANNER for one in found):
        return None
    return _section(
        found,
        protocol,
        names=[*methods, suite.PLANNER],
        title="Beside a planner that knows the rules",
        text=f"{suite.PLANNER} learns nothing: at every step it divides the agents "
        "among the fires by what they can expect to gain, under the true "
        "probabilities.",
        fits=lambda one, setup: setup in (one.cell.trained_on or one.cell.plays),
        setups=suite.NATIVE,
        metrics=("return",),
        paper=None,
        kind="planner",
    )


def _transfers(
    found: Sequence[Done], protocol: Protocol, part: suite.Part, paper: BesidePaper
) -> list[Section]:
    names = [name for name in _names(part) if name not in _given()]
    what = "Ablation, zero-shot" if paper == "ablation" else "Zero-shot"
    made = [
        _section(
            found,
            protocol,
            names=names,
            title=f"{what}: from {source} to {target}".replace("x", "×"),
            text="Checkpoints are chosen on what they were trained on; nothing is "
            "learned on the setups of this table.",
            fits=lambda one, setup, source=source: any(
                grid_of(name) == source and level_of(name) == level_of(setup)
                for name in one.cell.trained_on
            ),
            setups=[f"wildfire-{target}-{level}-transfer" for level in suite.LEVELS],
            metrics=TRANSFERRED,
            paper=paper,
        )
        for source, targets in TRANSFER.items()
        for target in targets
    ]
    return [section for section in made if section is not None]


def _generalist(found: Sequence[Done], protocol: Protocol) -> list[Section]:
    """Policies for all native setups, trained here or given, beside those for one."""
    known = _names("generalist")
    general = [one for one in found if one.cell.row.name in known]
    if not general:
        return []
    special = [
        one
        for one in found
        if one.cell.row.name == suite.PLATO.name and len(one.cell.trained_on) == 1
    ]
    cells = [one.cell for one in general + special]
    # The one that is given was trained, too, but not here.
    steps = {cell.row.name: cell.steps or suite.SHIPPED_STEPS for cell in cells}
    spent = ", ".join(f"{name} {count / 1e6:.3g}" for name, count in steps.items())
    made = [
        _section(
            general + special,
            protocol,
            names=tuple(steps),
            title="One policy for all: native setups",
            text="A generalist is one policy for all native setups; captions say "
            "what specialists were trained on. The shipped one is "
            f"{suite.SHIPPED_AS}, which the shipped specialists advised at first. "
            "Its intervals and marks are over episodes alone: another training of it "
            f"might do better or worse. Million steps of training: {spent}.",
            fits=lambda one, setup: setup in (one.cell.trained_on or [setup]),
            setups=suite.NATIVE,
            metrics=("return",),
            paper=None,
            kind="general",
        )
    ]
    for source, targets in TRANSFER.items():
        made += [
            _section(
                general + special,
                protocol,
                names=tuple(steps),
                title=f"One policy for all: {target} unseen, specialists of "
                f"{source}".replace("x", "×"),
                text="Nobody was trained on the setups of this table.",
                fits=lambda one, setup, source=source: (
                    len(one.cell.trained_on) != 1
                    or source in map(grid_of, one.cell.trained_on)
                ),
                setups=[f"wildfire-{target}-{lv}-transfer" for lv in suite.LEVELS],
                metrics=("return",),
                paper=None,
                kind="unseen",
            )
            for target in targets
        ]
    return [section for section in made if section is not None]


def _section(
    found: Sequence[Done],
    protocol: Protocol,
    *,
    names: Sequence[str],
    title: str,
    text: str,
    fits: Callable[[Done, str], bool],
    setups: Sequence[str],
    metrics: Sequence[str],
    paper: BesidePaper | None,
    kind: Kind = "other",
) -> Section | None:
    """A comparison of the rows that are complete where any training was done."""
    gathered: dict[tuple[str, str], list[Done]] = {}
    for one in found:
        for setup in one.cell.plays if one.cell.row.name in names else ():
            if setup in setups and fits(one, setup):
                gathered.setdefault((one.cell.row.name, setup), []).append(one)
    trained = {s for (_, s), group in gathered.items() if group[0].cell.trained_on}
    where = [setup for setup in setups if setup in trained]
    known = {
        key: result
        for key, group in gathered.items()
        for result in results(group, [key[1]]).values()
    }
    least = 2 if protocol.name == "field" else 1
    complete = contestants(known, where, least)
    if not where or not any(c.trainings for c in complete):
        return None
    comparison = compare(
        complete,
        [load_setup(name) for name in where],
        Recorded(protocol, known),
        metrics=metrics,
        optimum=_optima(where) if protocol.noise == "independent" else {},
    )
    missing = tuple(n for n in names if n not in comparison.contestants)
    return Section(title, text, report(comparison, paper), kind, missing, comparison)


def _names(part: suite.Part) -> list[str]:
    """The rows of a part's tables, in their order."""
    names = [row.name for row in suite.ROWS[part]]
    if part == "ablation":
        return ["mlp+add", *names[1:]]
    return [*names, *(_given() if part == "methods" else ())]


def _given() -> list[str]:
    rows = suite.ROWS["given"]
    return [row.name for row in rows if row.name != suite.PLANNER]


def _renamed(found: Sequence[Done]) -> list[Done]:
    """PLATO under the name that the ablation has for it."""
    return [
        replace(one, cell=replace(one.cell, row=replace(one.cell.row, name="mlp+add")))
        if one.cell.row.name == suite.PLATO.name
        else one
        for one in found
        if one.cell.trained_on
    ]


def _optima(setups: Sequence[str]) -> Mapping[str, float]:
    known = {name: known_optimum(load_setup(name)) for name in setups}
    return {name: value for name, value in known.items() if value is not None}
