"""`plato …` as a person runs it, and how a refusal looks."""

import contextlib
import io
import subprocess
import sys
from pathlib import Path
from unittest import mock

from compiling import AS_USERS_DO

PROGRAM = "from plato.cli.main import main; main()"

Result = subprocess.CompletedProcess[str]


def run_plato(folder: Path, *arguments: object) -> Result:
    """Runs `plato …` in a folder, within this process: that spares its start."""
    from plato.cli.main import main

    line = ["plato", *map(str, arguments)]
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", line),
    ):
        try:
            code = main()
        except SystemExit as end:
            code = end.code
    return subprocess.CompletedProcess(
        line, int(code or 0), out.getvalue(), err.getvalue()
    )


def start_plato(folder: Path, *arguments: object) -> Result:
    """Runs `plato …` in a folder, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "plato", *map(str, arguments)],
        cwd=folder,
        env=AS_USERS_DO,
        capture_output=True,
        text=True,
        check=False,
    )


def refused(result: Result, *words: str) -> None:
    """Exit code 2, one sentence on standard error, nothing like a traceback."""
    assert result.returncode == 2, result
    assert "Traceback" not in result.stderr, result.stderr
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("plato: "), lines[0]
    for word in words:
        assert word in lines[0], lines[0]
