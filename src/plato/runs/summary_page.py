"""summary.html of a finished run: one page that needs nothing else."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from plato.configuration import to_mapping
from plato.evaluation.evaluate import Evaluation
from plato.evaluation.metrics import mean_and_std, shown
from plato.learners.config import METHODS, CommonSettings, TrainConfig
from plato.pages.page import asset, page
from plato.runs.curves import curve, legend
from plato.runs.folder import RunFolder
from plato.runs.lines import MOST_PANELS, learning_curves
from plato.runs.words import evaluated, how, share, title


def summary_page(folder: RunFolder, results: Sequence[Evaluation]) -> str:
    """The page of a run that came to its end."""
    config = folder.config()
    about = folder.environment()
    setups = share(config, _listed(config.setups))
    head = (
        f"<header><p class=eyebrow>Training run, {escape(config.method)}</p>"
        f"<h1>{escape(title(config.setups))}</h1>"
        f"<p class=lede>{escape(how(config, about))}</p>"
        f"{f'<p class=lede>{setups}</p>' if setups else ''}</header>"
    )
    sections = [
        _section("What came of it", _results(config, results)),
        _section("How it learned", _curves(folder)),
        _section("What to do with it", _commands(folder, config)),
        _section("Settings", _settings(config)),
    ]
    return page(
        f"Training run on {title(config.setups)}",
        f"{head}<main>{''.join(sections)}</main>",
        styles=[asset("plato.runs", "summary.css")],
    )


def _section(heading: str, content: str) -> str:
    if not content:
        return ""
    return f"<section class=card><h2>{escape(heading)}</h2>{content}</section>"


def _results(config: TrainConfig, results: Sequence[Evaluation]) -> str:
    metrics = shown([result.metrics for result in results])
    labels = [metric.label for metric in metrics.values()]
    names = "".join(f"<th scope=col>{escape(label)}</th>" for label in labels)
    rows = "".join(_row(result, list(metrics)) for result in results)
    return (
        f"<p class=soft>{escape(evaluated(config, results))}</p>"
        f"<div class=scrolls><table class=results><thead><tr><th scope=col>setup</th>"
        f"<th scope=col>policy</th>{names}</tr></thead><tbody>{rows}</tbody></table>"
        f"</div>"
    )


def _row(result: Evaluation, metrics: Sequence[str]) -> str:
    cells = []
    for name in metrics:
        mean, spread = mean_and_std(result.metrics[name])
        cells.append(f"<td>{mean:z.2f} <span class=spread>± {spread:.2f}</span></td>")
    return (
        f"<tr><th scope=row>{escape(result.setup)}</th><td>{escape(result.policy)}</td>"
        f"{''.join(cells)}</tr>"
    )


def _curves(folder: RunFolder) -> str:
    panels = []
    for setups, lines in learning_curves(folder).items():
        name = title(setups)
        panels.append(
            f"<figure><figcaption>{escape(name)}</figcaption>"
            f"{curve(lines, f'Return over steps on {name}')}{legend(lines)}</figure>"
        )
    if not panels:
        return ""
    left = len(panels) - MOST_PANELS
    note = f" The first {MOST_PANELS} of {len(panels)}." if left > 0 else ""
    return (
        f"<p class=soft>Mean return of the episodes that ended in each update, while "
        f"the policy explores.{note}</p>"
        f"<div class=panels>{''.join(panels[:MOST_PANELS])}</div>"
    )


def _commands(folder: RunFolder, config: TrainConfig) -> str:
    """Commands that go on from here, for the folder that holds the run's."""
    name = folder.path.resolve().name
    first, more = config.runs[0], len(config.runs) - 1
    policy = f"{name}/checkpoints/{first}" if more else name
    setup = first.setups[0]
    own = ":" in setup  # a game of one's own has neither heuristics nor a picture
    rule = "random" if own else "weakest"
    lines = [f"plato evaluate --setup {setup} --policy {policy} --policy {rule}"]
    if not own:
        lines.append(f"plato replay {policy} {rule} --setup {setup} --open")
    if config.seeds > 1:
        lines.append(f"plato compare {name} --policy {rule}")
    text, note = escape("\n".join(lines)), ""
    if more:
        where = f"<code>{escape(name)}/checkpoints</code>"
        others = "one other training is" if more == 1 else f"{more} other trainings are"
        note = f"<p class=soft>The {others} in {where}, too.</p>"
    return (
        f"<p class=soft>In the folder that holds <code>{escape(name)}</code>: play it "
        f"beside another policy on the same noise.</p><pre>{text}</pre>"
        f"{note}"
    )


def _settings(config: TrainConfig) -> str:
    kinds = METHODS[config.method]
    mapping = config.to_mapping()
    groups = {
        "Networks": (mapping.pop("networks"), to_mapping(kinds.networks())),
        "Learning": (mapping.pop("learning"), to_mapping(kinds.learning())),
    }
    # What a run is about is not a change of settings.
    usual = mapping | to_mapping(CommonSettings())
    groups = {"Run": (mapping, usual)} | groups
    blocks = "".join(
        f"<div><h3>{name}</h3><dl>{''.join(_pairs(*both))}</dl></div>"
        for name, both in groups.items()
    )
    return (
        f"<p class=soft>As in <code>config.toml</code>, which can be given to "
        f"<code>plato train --config</code>. What differs from the defaults is bold."
        f"</p><div class=settings>{blocks}</div>"
    )


def _pairs(settings: Mapping[str, Any], usual: Mapping[str, Any]) -> Iterator[str]:
    for name, value in settings.items():
        look = "" if usual.get(name) == value else ' class="changed"'
        yield f"<dt{look}>{escape(name)}</dt><dd{look}>{_shown(value)}</dd>"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _listed(value) if isinstance(value, list) else escape(str(value))


def _listed(values: Sequence[Any]) -> str:
    """One after the other; lines end between them, not at the hyphens of names."""
    names = ",</span> <span class=whole>".join(escape(str(v)) for v in values)
    return f"<span class=whole>{names}</span>"
