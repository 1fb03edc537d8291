"""Runs what pages of the documentation show, and says what stands for what.

`shown.py` says how pages are read. What takes long is run in a short form, and what
cannot be run in a test is named; both are in the tables below, and nowhere else.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import shown
from compiling import TO_LEARN

ROOT = Path(__file__).parent.parent
LEARNING = ("docs/tutorial.md", "docs/howto/domain.md")
"""Pages that learn something, with programs that run as long as they take to compile.
Those of the others run for less time."""
SMALL = "--updates 2 --games 8 --steps 8 --hidden 8 --minibatches 2"
SHORTER = "--seeds 2 --updates 2 --games 4 --steps 4"
FEW = "--methods NOOP Random --setup wildfire-2x3-S0 --only native"
TRAIN = "plato train --setup"
BASELINE = "plato train --method {} --setup wildfire-3x3-S3"
ENTRY = f"{TRAIN} wildfire-2x3-S2 --setup wildfire-2x3-S3 --out runs/entry"
SHORT = {
    # A training learns in minutes; two small updates go the same way.
    f"{TRAIN} wildfire-3x3-S3": f"{TRAIN} wildfire-3x3-S3 {SMALL}",
    f"{TRAIN} wildfire-2x3-S2": f"{TRAIN} wildfire-2x3-S2 {SMALL}",
    f"{TRAIN} mine.toml": f"{TRAIN} mine.toml {SMALL}",
    ENTRY: f"{ENTRY} {SMALL}",
    f"{TRAIN} wildfire-3x3-S3 --seeds 2": (
        f"{TRAIN} wildfire-3x3-S3 {SHORTER} --hidden 8 --minibatches 2"
    ),
    f"{BASELINE.format('dicg')} --seeds 2": (
        f"{BASELINE.format('dicg')} {SHORTER} --minibatches 2 --epochs 1"
    ),
    f"{BASELINE.format('dgn')} --seeds 2": (
        f"{BASELINE.format('dgn')} {SHORTER} --batch 4 --memory 99 --warm-up 16"
    ),
    f"{BASELINE.format('mohito')} --seeds 2": (
        f"{BASELINE.format('mohito')} {SHORTER} --batch 4 --memory 99 --warm-up 16 "
        f"--hidden 4 --layers 2"
    ),
    # No browser is opened in a test.
    "plato replay optimal runs/wildfire-3x3-S3 --setup wildfire-3x3-S3 --open": (
        "plato replay optimal runs/wildfire-3x3-S3 --setup wildfire-3x3-S3"
    ),
    # All experiments take days; those of two given policies on one setup, seconds.
    "plato reproduce": f"plato reproduce {FEW}",
}
"""What is run in place of what is shown."""
ELSEWHERE = {
    "make test": "it is what runs this",
    "make demo": "test_the_demo_is_what_the_makefile_says",
    "pip install -e '.[plots]'": "what is tested was installed so",
    "pip install -e '.[cuda]'": "needs a GPU",
    "pip install -e '.[cluster]'": "what is tested was installed so",
    "ray start --head": "tests/experiments/test_cluster.py starts clusters",
    "ray start --address 10.0.0.1:6379": "the same",
    "plato train --setup wildfire-3x3-S3 --seeds 8 --games 1024 --precision bfloat16": (
        "needs a GPU; tests/learners/test_mappo.py has the precision"
    ),
    "plato reproduce --engine gpu": "tests/experiments/test_engines.py",
    "plato reproduce --engine ray --address 10.0.0.1:6379 --gpus 0.25": (
        "tests/experiments/test_cluster.py"
    ),
    "plato tune --method dicg --engine ray --address 10.0.0.1:6379 --gpus 0.25": (
        "tests/experiments/test_cluster.py"
    ),
}
"""What is not run here, and what sees to it."""


@dataclass(frozen=True)
class Ran:
    """A step, what came of it, and the folder of its page."""

    step: shown.Step
    code: int
    out: str
    err: str
    folder: Path

    def check(self) -> None:
        """It ran, and printed what is shown."""
        assert self.code == 0, f"{self.step.text}\n{self.err}"
        assert shown.differences(self.step, self.out) == [], self.step.text


def steps_of(page: str) -> list[shown.Step]:
    return shown.steps(ROOT / page, page)


def in_place(step: shown.Step) -> str | None:
    """What is run for a step; None where it is not run here."""
    if step.kind != "command":
        return step.text
    return None if step.text in ELSEWHERE else SHORT.get(step.text, step.text)


def run_pages(pages: tuple[str, ...], folder: Callable[[str], Path]) -> dict[str, Ran]:
    """Every step of the pages by its place, each page in a new folder."""
    folders = {page: folder(Path(page).stem) for page in pages}
    results = {}
    for learning in (True, False):
        chosen = [page for page in pages if (page in LEARNING) == learning]
        settings = TO_LEARN if learning else dict(os.environ)
        lines = iter(_run(chosen, folders, settings))
        for page in chosen:
            for step in steps_of(page):
                line = {k: v for k, v in next(lines).items() if k != "seconds"}
                results[step.place] = Ran(step, folder=folders[page], **line)
    return results


def _run(
    chosen: list[str], folders: dict[str, Path], settings: dict[str, str]
) -> list[dict[str, Any]]:
    """All of them in one process."""
    asked = {
        str(ROOT / page): {
            "folder": str(folders[page]),
            "run": [in_place(step) for step in steps_of(page)],
        }
        for page in chosen
    }
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "shown.py")],
        env=settings,
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == sum(len(one["run"]) for one in asked.values()), done.stderr
    return lines
