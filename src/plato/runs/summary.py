"""The summary of a finished run: what it was, how it went, what came of it."""

import io
import json
from collections.abc import Sequence
from pathlib import Path

from plato.evaluation.evaluate import Evaluation
from plato.evaluation.metrics import mean_and_std, shown
from plato.files import write_bytes, write_text
from plato.runs.folder import RunFolder
from plato.runs.summary_page import summary_page
from plato.runs.words import described, evaluated, title


def write_summary(folder: RunFolder, results: Sequence[Evaluation]) -> None:
    """Writes SUMMARY.md, summary.html and, where Matplotlib is installed, curve.png."""
    config = folder.config()
    with_curve = draw_curve(folder, folder.path / "curve.png")
    about = json.loads((folder.path / "environment.json").read_text())
    metrics = shown([result.metrics for result in results])
    header = ["setup", "policy", *(metric.label for metric in metrics.values())]
    rows = [header, ["---"] * 2 + ["---:"] * len(metrics)]
    for result in results:
        cells = [mean_and_std(result.metrics[name]) for name in metrics]
        numbers = [f"{mean:z.2f} ± {std:.2f}" for mean, std in cells]
        rows.append([result.setup, result.policy, *numbers])
    lines = [
        f"# {title(config)}",
        "",
        f"{len(config.runs)} training(s) of {described(config.learning)} on "
        f"{about['device']} (PLATO {about['plato']}, JAX {about['jax']}). All "
        f"settings: `config.toml`.",
        "",
        *(["![Learning curves](curve.png)", ""] if with_curve else []),
        evaluated(config, results),
        "",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
    write_text(folder.path / "SUMMARY.md", "\n".join(lines) + "\n")
    write_text(folder.path / "summary.html", summary_page(folder, results))


def draw_curve(folder: RunFolder, path: Path) -> bool:
    """Draws the return of finished episodes over steps; False without Matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    config = folder.config()
    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.add_subplot()
    for run in config.runs:
        rows = [row for row in folder.read_metrics(run) if row["episodes"]]
        x = [config.learning.played(int(row["update"])) for row in rows]
        axes.plot(x, [row["return"] for row in rows], label=str(run), linewidth=1.2)
    axes.set_xlabel("environment steps")
    axes.set_ylabel("return of finished episodes")
    axes.grid(alpha=0.3)
    if len(config.runs) <= 8:
        axes.legend(fontsize=8)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=150)
    write_bytes(path, picture.getvalue())
    return True
