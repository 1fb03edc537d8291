"""What `plato train` shows: how far it is, then the evaluation."""

import os
import shlex
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from rich.console import Console

from plato.cli.live import Lines, clock, live_lines, speed
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
"""What else of a method's metrics is shown live."""


def train_and_show(folder: RunFolder, out: Console) -> int:
    """Trains with a live console, evaluates, and writes the summary."""
    config = folder.config()
    learning = config.learning
    begun = time.monotonic()
    with _ctrl_c_leaves(folder) as live:
        out.print(
            f"Training {len(config.runs)} run(s) of {described(learning)}; the first "
            f"update compiles."
        )
        lines = live.enter_context(live_lines(out, learning.updates))
        lines.show(folder.updates_done(), "compiling …")
        finished = train(folder, lambda progress: _show(lines, progress))
        live.close()
        if not finished:
            print(f"Stopped, and saved. {_go_on(folder)}")
            return INTERRUPTED
        live.enter_context(out.status("playing the last policies"))
        results = evaluate_runs(folder)
        live.close()
        out.print(evaluation_table(results, out.width))
        write_summary(folder, results)
    seconds = time.monotonic() - begun
    out.print(
        f"{seconds:.0f} s in all. The run, its policies and summary.html: "
        f"{folder.path}",
        soft_wrap=True,
        markup=False,
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


@contextmanager
def _ctrl_c_leaves(folder: RunFolder) -> Iterator[ExitStack]:
    """While nothing is there to be saved, Ctrl-C says how to go on, and that is all.

    Nothing is waited for: a run may be killed at any moment, and compilers, which other
    threads are in, would not let go for a minute. What is shown live must be on the
    stack, so that it leaves the terminal as it was. Updates have a Ctrl-C of their own,
    see `train`, and the second one comes here.
    """
    with ExitStack() as live:

        def leave(*_: Any) -> None:
            live.close()
            print(f"Stopped. {_go_on(folder)}", flush=True)
            os._exit(INTERRUPTED)

        usual = signal.signal(signal.SIGINT, leave)
        try:
            yield live
        finally:
            signal.signal(signal.SIGINT, usual)


def _go_on(folder: RunFolder) -> str:
    return f"Continue with: plato train --resume {shlex.quote(str(folder.path))}"


def _show(lines: Lines, progress: Progress) -> None:
    metrics = [
        form(float(np.mean(progress.metrics[name])))
        for name, form in SHOWN.items()
        if name in progress.metrics
    ]
    lines.show(
        progress.update,
        f"ETA {clock(progress.seconds_left)}  {speed(progress)}",
        "  ".join([f"return {progress.mean_return}", *metrics]),
    )
