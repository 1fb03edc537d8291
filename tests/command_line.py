"""`plato …` as a person runs it, and how a refusal looks."""

import os
import subprocess
import sys
from pathlib import Path

from cache import CACHE

PROGRAM = "from plato.cli.main import main; main()"


def run_plato(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs `plato …` in a folder."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
        cwd=folder,
        env=os.environ | {"JAX_COMPILATION_CACHE_DIR": str(CACHE)},
        capture_output=True,
        text=True,
        check=False,
    )


def refused(result: subprocess.CompletedProcess[str], *words: str) -> None:
    """Exit code 2, one sentence on standard error, nothing like a traceback."""
    assert result.returncode == 2, result
    assert "Traceback" not in result.stderr, result.stderr
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("plato: "), lines[0]
    for word in words:
        assert word in lines[0], lines[0]
