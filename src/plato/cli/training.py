"""What `plato train` shows: a live line of progress, then the evaluation."""

import time

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from plato.evaluation.evaluate import Evaluation, evaluate
from plato.evaluation.named import acting
from plato.evaluation.tables import evaluation_table
from plato.policies.checkpoint import load_policy
from plato.runs.folder import RunFolder
from plato.runs.summary import write_summary
from plato.runs.train import Progress, train
from plato.runs.words import described

INTERRUPTED = 130
SHOWN = {
    "entropy": "entropy {:.2f}".format,
    "kl": "KL {:.4f}".format,
    "epsilon": "epsilon {:.2f}".format,
    "value_loss": "value loss {:.3f}".format,
}
"""What else of a method's metrics the live line shows."""


def train_and_show(folder: RunFolder, out: Console) -> int:
    """Trains with a live console, evaluates, and writes the summary."""
    config = folder.config()
    learning = config.learning
    begun = time.monotonic()
    out.print(
        f"Training {len(config.runs)} run(s) of {described(learning)}; the first "
        f"update compiles.",
        soft_wrap=True,
    )
    with _bar(out) as bar:
        task = bar.add_task("", total=learning.updates, line="compiling …")
        finished = train(folder, lambda p: _show(bar, task, p))
    if not finished:
        out.print(
            f"Stopped, and saved. Continue with: plato train --resume {folder.path}",
            soft_wrap=True,
        )
        return INTERRUPTED
    results = evaluate_runs(folder)
    out.print(evaluation_table(results, out.width))
    write_summary(folder, results)
    seconds = time.monotonic() - begun
    out.print(
        f"{seconds:.0f} s in all. The run, its policies and summary.html: "
        f"{folder.path}",
        soft_wrap=True,
    )
    return 0


def evaluate_runs(folder: RunFolder) -> list[Evaluation]:
    """The last policy of each run on each of its setups, seeds 200–249."""
    config = folder.config()
    results = []
    for run in config.runs:
        policy = acting(load_policy(folder.last_checkpoint(run)), "own")
        for setup in run.setups:
            name = f"{config.method} seed {run.seed}"
            results.append(evaluate(policy, setup, noise=config.noise, name=name))
    return results


def _bar(out: Console) -> Bar:
    return Bar(
        TextColumn("{task.completed}/{task.total}"),
        BarColumn(bar_width=20),
        TimeElapsedColumn(),
        TextColumn("{task.fields[line]}"),
        console=out,
    )


def _show(bar: Bar, task: object, progress: Progress) -> None:
    mean = {name: float(np.mean(v)) for name, v in progress.metrics.items()}
    left = progress.seconds_left
    line = (
        f"ETA {_clock(left)}  {progress.steps_per_second:,.0f} steps/s  "
        f"return {progress.mean_return}  "
    ) + "  ".join(SHOWN[name](mean[name]) for name in SHOWN if name in mean)
    bar.update(task, completed=progress.update, line=line)  # pyright: ignore[reportArgumentType]


def _clock(seconds: float) -> str:
    if not np.isfinite(seconds):
        return "–"
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
