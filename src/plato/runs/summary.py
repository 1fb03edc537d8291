"""The summary of a finished run: what it was, how it went, what came of it."""

from collections.abc import Sequence

from plato.evaluation.evaluate import Evaluation
from plato.evaluation.metrics import mean_and_std, shown
from plato.files import write_text
from plato.runs.folder import RunFolder
from plato.runs.lines import learning_curves
from plato.runs.picture import write_picture
from plato.runs.summary_page import summary_page
from plato.runs.words import evaluated, how, share, title


def write_summary(folder: RunFolder, results: Sequence[Evaluation]) -> None:
    """Writes SUMMARY.md, summary.html and, where Matplotlib is installed, curve.png."""
    config = folder.config()
    drawn = write_picture(learning_curves(folder), folder.path / "curve.png")
    about = folder.environment()
    setups = share(config, ", ".join(config.setups))
    metrics = shown([result.metrics for result in results])
    header = ["setup", "policy", *(metric.label for metric in metrics.values())]
    rows = [header, ["---"] * 2 + ["---:"] * len(metrics)]
    for result in results:
        cells = [mean_and_std(result.metrics[name]) for name in metrics]
        numbers = [f"{mean:z.2f} ± {std:.2f}" for mean, std in cells]
        rows.append([result.setup, result.policy, *numbers])
    lines = [
        f"# {title(config.setups)}",
        "",
        f"{how(config, about)} All settings: `config.toml`.",
        "",
        *([setups, ""] if setups else []),
        *(["![Learning curves](curve.png)", ""] if drawn else []),
        evaluated(config, results),
        "",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
    write_text(folder.path / "SUMMARY.md", "\n".join(lines) + "\n")
    write_text(folder.path / "summary.html", summary_page(folder, results))
