"""All twelve native setups, three seeds each, trained on one GPU in one command.

    python benchmarks/fleet.py [--out runs/fleet]

Each grid is trained in the form, and for the time, that suits it: a `plato train
--fleet` for each, side by side. Where nothing spreads (S0), a team knows all there is
to know after a minute. The time is that of all of them, starts and compiling included;
then what they learned is played, as `benchmarks/learning.py` does it. What is there
already is not trained again.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from learning import HEAD, table

FORM = "--games 128 --steps 100 --precision bfloat16 --checkpoints 6 --seeds 3"


class Part(NamedTuple):
    """Setups that are trained alike."""

    grids: tuple[str, ...]
    levels: tuple[str, ...]
    flags: str

    @property
    def name(self) -> str:
        return "-".join(self.grids + self.levels)

    @property
    def setups(self) -> list[str]:
        return [
            f"wildfire-{grid}-{level}" for grid in self.grids for level in self.levels
        ]


SPREADING = ("S1", "S2", "S3")
PARTS = (
    Part(
        ("4x4",),
        SPREADING,
        "--depth 2 --updates 1200 --beginnings 4 --audition 0.45 --entropy 0.1 "
        "--entropy-end 0.0002 --rate-end 0.02",
    ),
    Part(
        ("2x3", "3x3"),
        SPREADING,
        "--context pointer --updates 640 --beginnings 4 --entropy-end 0.0005",
    ),
    Part(("2x3", "3x3", "4x4"), ("S0",), "--updates 60"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/fleet"))
    parser.add_argument("--episodes", type=int, default=2_000)
    options = parser.parse_args()
    begun = time.perf_counter()
    trained = [(part, _training(part, options.out / part.name)) for part in PARTS]
    failed = [part.name for part, training in trained if training.wait()]
    took = time.perf_counter() - begun
    if failed:
        sys.exit(f"{', '.join(failed)}: not trained; see above.")
    runs = 3 * sum(len(part.setups) for part in PARTS)
    print(f"\n{runs} trainings: {took:.0f} s\n")
    print(HEAD)
    for part in PARTS:
        for row in table(options.out / part.name, options.episodes):
            print(row, flush=True)


def _training(part: Part, out: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "plato", "train", "--fleet"]
    command += [*FORM.split(), *part.flags.split(), "--out", str(out)]
    for setup in part.setups:
        command += ["--setup", setup]
    # Several processes share the device: none may take all of its memory.
    return subprocess.Popen(
        command, env=os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    )


if __name__ == "__main__":
    main()
