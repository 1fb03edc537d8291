"""The report: a store as one page that needs nothing else, or as Markdown or LaTeX."""

import base64
import io
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Literal, TypeAlias

from plato.evaluation import rendering
from plato.evaluation.layout import Report
from plato.experiments.findings import compute
from plato.experiments.glance import glance
from plato.experiments.pictures import can_draw, pictures
from plato.experiments.recorded import Done
from plato.experiments.sections import Section, sections
from plato.experiments.suite import in_order
from plato.files import write_text
from plato.pages.page import asset, page, prose

Format: TypeAlias = Literal["html", "markdown", "latex"]
TITLE = "PLATO: the paper's experiments, reproduced"
PROTOCOLS = {
    "field": (
        "By the field's protocol",
        "Every episode has noise of its own, in training as in evaluation. Trainings "
        "are the unit: of each, the checkpoint that does best on validation seeds "
        "plays seeds that chose nothing.",
    ),
    "paper": (
        "By the paper's protocol",
        "As the paper's numbers came about: one fixed stream of noise in all training "
        "and evaluation, and checkpoints chosen on the seeds that are reported. "
        "Numbers of this kind say how well a policy knows one course of events.",
    ),
}
NOTHING = {
    "field": "Nothing to show yet: intervals are over trainings, and no row has two of "
    "them on the same setup. Given policies are shown beside such rows alone.",
    "paper": "Nothing to show yet: no row has been trained.",
}
"""Why a protocol may have cells and no tables."""
DIFFERENCES = (
    (
        "Fixed noise",
        "The paper's evaluation reseeds its generator, so that all 50 seeds see the "
        "same course of fires; what differs between them is the policy's own drawing. "
        "Both ways are here: the paper's protocol repeats it, the field's does not.",
    ),
    (
        "PLATO's form",
        "Algorithm 1 sums the team up by statistics, which are the same for every "
        "agent. The row PLATO is the actor of the paper's agent-openness lemma, with "
        "the deciding agent's own features in the query, and agents that are away "
        "marked as such. Algorithm 1 as printed is a row of the table of switches.",
    ),
    (
        "Budgets",
        "The paper trains each model for days. Steps and seconds of each row are in "
        "the last table.",
    ),
    (
        "Settings",
        "DICG, DGN and MOHITO have the settings that the paper tuned, or else those of "
        "their own codes; but DGN and MOHITO make one gradient step for 200 and for 60 "
        "steps played, where their codes do for 20 and for one. PLATO's rates, batches "
        "and schedules were chosen anew for short trainings, on these setups. No row "
        "is of a search with one budget for all (`plato tune`).",
    ),
    (
        "Baselines",
        "DICG's graph convolutions are trained, which in the released code stay as "
        "they were drawn. MOHITO's actors learn by soft choices among what they may "
        "do, and its critics from each step's own reward.",
    ),
    (
        "Trainings",
        "The paper trains each method once on each setup. Rows here say how many "
        "trainings they have; by the field's protocol, intervals and tests are over "
        "these.",
    ),
    (
        "Suppressant",
        "In the paper's text agents start S3 with 2, 1 and 0 units. Its rows of NOOP, "
        "Weakest and Strongest come out with 2 for each, so that is S3 here; what the "
        "text has is `wildfire-3x3-S3-uneven`.",
    ),
    (
        "Transfer maps",
        "The paper does not print them. Those of the zero-shot tables are guesses in "
        "the style of the native ones: only how many fires there are, and how many "
        "large ones, follows from its tables. Zero-shot numbers of ours and of the "
        "paper are thus not of the same maps.",
    ),
    (
        "Heuristics",
        "Weakest and Strongest look at a fire's place in the list rather than at the "
        "fire in the released code; tables here have the released ones, so that they "
        "can be put beside the paper's.",
    ),
)
"""What to know when ours and the paper's are read side by side."""


def write_report(found: Sequence[Done], path: Path, form: Format) -> None:
    """Writes the report of what is done."""
    make = {"html": _html, "markdown": _markdown, "latex": _latex}[form]
    write_text(path, make(found))


def _by_protocol(found: Sequence[Done]) -> dict[str, list[Section]]:
    kinds = dict.fromkeys(one.cell.protocol for one in found)
    made = {kind.name: sections(found, kind) for kind in kinds}
    return {name: made[name] for name in PROTOCOLS if name in made}


def _about(protocol: str, parts: Sequence[Section]) -> tuple[str, str]:
    """A protocol's title, and what is said below it."""
    title, text = PROTOCOLS[protocol]
    return title, text if parts else f"{text} {NOTHING[protocol]}"


def _markdown(found: Sequence[Done]) -> str:
    by_protocol = _by_protocol(found)
    lines = [f"# {TITLE}", "", _facts(found), "", "## At a glance", ""]
    lines += [*(f"- {line}" for line in glance(by_protocol)), ""]
    for name, parts in by_protocol.items():
        title, text = _about(name, parts)
        lines += [f"## {title}", "", text, ""]
        for part in parts:
            lines += [f"### {part.title}", ""]
            lines += [f"{_said(part)}", ""] if _said(part) else []
            lines.append(rendering.markdown(part.report))
    lines += ["## What differs from the paper, and why", ""]
    lines += [f"- **{name}.** {text}" for name, text in DIFFERENCES]
    lines += ["", "## What it took", "", rendering.markdown(compute(found))]
    return "\n".join(lines)


def _latex(found: Sequence[Done]) -> str:
    by_protocol = _by_protocol(found)
    parts: list[Report | rendering.Heading] = [
        rendering.Heading(TITLE, _facts(found)),
        rendering.Heading("At a glance", "\n".join(glance(by_protocol))),
    ]
    for name, own in by_protocol.items():
        parts.append(rendering.Heading(*_about(name, own)))
        for part in own:
            parts.append(rendering.Heading(part.title, _said(part), "subsection"))
            parts.append(part.report)
    differences = "\n".join(f"{name}: {text}" for name, text in DIFFERENCES)
    return rendering.latex(
        *parts,
        rendering.Heading("What differs from the paper, and why", differences),
        rendering.Heading("What it took"),
        compute(found),
    )


def _html(found: Sequence[Done]) -> str:
    by_protocol = _by_protocol(found)
    sentences = "".join(f"<li>{prose(line)}</li>" for line in glance(by_protocol))
    blocks = [f"<section id=glance><h2>At a glance</h2><ul>{sentences}</ul></section>"]
    links = []
    for name, parts in by_protocol.items():
        title, text = _about(name, parts)
        links.append((name, title))
        shown = _pictures(found, name, parts) + "".join(map(_block, parts))
        blocks.append(
            f"<section id={name}><h2>{escape(title)}</h2><p class=lede>{prose(text)}"
            f"</p>{shown}</section>"
        )
    items = "".join(
        f"<dt>{escape(name)}</dt><dd>{prose(text)}</dd>" for name, text in DIFFERENCES
    )
    blocks.append(
        f"<section id=differences><h2>What differs from the paper, and why</h2>"
        f"<dl>{items}</dl></section>"
        f"<section id=compute><h2>What it took</h2>{rendering.html(compute(found))}"
        f"</section>"
    )
    links += [("differences", "What differs"), ("compute", "What it took")]
    menu = "".join(f"<a href=#{name}>{escape(title)}</a>" for name, title in links)
    body = (
        f"<header><p class=eyebrow>Reproduction</p><h1>{escape(TITLE)}</h1>"
        f"<p class=lede>{escape(_facts(found))}</p>{_without_pictures()}"
        f"<nav>{menu}</nav></header>"
        f"<main>{''.join(blocks)}</main>"
    )
    return page(TITLE, body, styles=[asset("plato.experiments", "report.css")])


def _block(part: Section) -> str:
    said = f"<p>{prose(_said(part))}</p>" if _said(part) else ""
    return (
        f"<details open><summary><h3>{escape(part.title)}</h3></summary>{said}"
        f"{rendering.html(part.report)}</details>"
    )


def _pictures(found: Sequence[Done], protocol: str, parts: Sequence[Section]) -> str:
    drawn = pictures([o for o in found if o.cell.protocol.name == protocol], parts)
    figures = []
    for caption, figure in drawn.items():
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
        source = base64.b64encode(text.getvalue().encode()).decode()
        figures.append(
            f'<figure class=picture><img alt="{escape(caption)}" '
            f'src="data:image/svg+xml;base64,{source}">'
            f"<figcaption>{escape(caption)}</figcaption></figure>"
        )
    return "".join(figures)


def _without_pictures() -> str:
    if can_draw():
        return ""
    pip = "pip install 'plato-marl[plots]'"
    return f"<p class=note>Pictures need Matplotlib: <code>{pip}</code>.</p>"


def _said(part: Section) -> str:
    if not part.missing:
        return part.text
    rows = "; ".join(part.missing)
    return f"{part.text} Not done everywhere yet, and so not shown: {rows}.".strip()


def _facts(found: Sequence[Done]) -> str:
    """How much there is, and what made it; first of all whether it is in earnest."""
    trained = sum(bool(one.cell.trained_on) for one in found)
    steps = sum(one.entry.data.get("steps", 0) for one in found)
    data = [one.entry.data for one in found]
    codes = dict.fromkeys(f"{d['code']['plato']} ({d['code']['digest']})" for d in data)
    jaxes = dict.fromkeys(d["environment"]["jax"] for d in data)
    devices = dict.fromkeys(d["environment"]["device"] for d in data)
    rows = len(dict.fromkeys(one.cell.row.name for one in found))
    versions = f"PLATO {', '.join(codes)}" if len(codes) < 4 else f"{len(codes)} states"
    return (
        f"{_cut_short(found)}{trained} trainings, {rows} of {len(in_order())} rows, "
        f"{steps / 1e9:.2f} billion environment steps, by {versions} of the code, JAX "
        f"{', '.join(jaxes)}, on {', '.join(devices)}."
    )


def _cut_short(found: Sequence[Done]) -> str:
    """A warning, where trainings are shorter than the suite's."""
    whole = {row.name: row.settings for row in in_order()}
    parts = [
        own.learning.updates / full.learning.updates
        for one in found
        if (own := one.cell.row.settings) and (full := whole.get(one.cell.row.name))
    ]
    if not parts or min(parts) >= 1:
        return ""
    return (
        f"Trainings were cut short, some to {100 * min(parts):.2g} % of their length: "
        f"the numbers show how things work, and not what the methods can do. "
    )
