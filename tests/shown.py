"""What the documentation shows: its blocks of commands and code, found and run.

- ```` ```console ````: lines that begin with `$ ` are commands, and what follows one is
  its output. A line `…` stands for any lines.
- ```` ``` ```` without a language: a command on every line, `#` begins a remark.
- ```` ```python ````: is executed; all blocks of a page share their names.
- `<!-- file: NAME -->` above a block: it is written to that file.
- `<!-- numbers vary -->` above a block: any numbers will do in its output, in the same
  places; `<!-- seconds vary -->`: only in front of ` s`.

As a program it runs pages, one process for all of them.
"""

import contextlib
import io
import json
import re
import shlex
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

WIDTH = 88
"""Columns of the terminal that the shown output comes from."""
FENCE = re.compile(r"^( *)```(\w*)\s*$")
MARK = re.compile(r"^<!-- (.*) -->$")
NUMBER = re.compile(r"[-−]?\d[\d,]*(\.\d+)?")
SECONDS = re.compile(r"\d[\d,]*(\.\d+)?(?= s\b)")


@dataclass(frozen=True)
class Step:
    """Something to run or to write, and what is shown of its output."""

    page: str
    line: int
    kind: str
    """command, python or file."""
    text: str
    output: str | None = None
    """None where no output is shown."""
    marks: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Block:
    """The lines between two fences."""

    language: str
    line: int
    lines: tuple[str, ...]
    marks: tuple[str, ...]


def steps(path: Path, page: str | None = None) -> list[Step]:
    """All that a page shows to be run, in its order."""
    name = page or path.name
    text = path.read_text(encoding="utf-8")
    return [step for block in blocks(text) for step in _steps(name, block)]


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page, with the comments that stand above them."""
    marks: list[str] = []
    inside: list[str] | None = None
    language, begin = "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        fence = FENCE.match(line)
        if inside is not None:
            if fence and not fence[2]:
                yield Block(language, begin, tuple(inside), tuple(marks))
                inside, marks = None, []
            else:
                inside.append(line)
        elif fence:
            inside, language, begin = [], fence[2], number + 1
        elif mark := MARK.match(line):
            marks.append(mark[1])
        elif line.strip():
            marks = []


def _steps(page: str, block: Block) -> Iterator[Step]:
    file = next((m[6:] for m in block.marks if m.startswith("file: ")), None)
    text = "\n".join(block.lines) + "\n"
    if file is not None:
        yield Step(page, block.line, "file", text, marks=(file,))
    elif block.language == "python":
        yield Step(page, block.line, "python", text)
    elif block.language == "console":
        yield from _session(page, block)
    elif block.language == "":
        for number, command in _commands(block.lines, block.line):
            if re.match(r"[a-z]", command):
                yield Step(page, number, "command", command, marks=block.marks)


def _session(page: str, block: Block) -> Iterator[Step]:
    """Commands behind `$ `, each with the output that follows."""
    begins = [i for i, line in enumerate(block.lines) if line.startswith("$ ")]
    for begin, end in zip(begins, [*begins[1:], len(block.lines)], strict=True):
        first = begin
        while block.lines[first].endswith("\\"):
            first += 1
        typed = [block.lines[begin].removeprefix("$ "), *block.lines[begin + 1 :]]
        ((_, command),) = _commands(typed[: first - begin + 1], 0)
        output = "\n".join(block.lines[first + 1 : end])
        line = block.line + begin
        yield Step(page, line, "command", command, output, block.marks)


def _commands(lines: Any, begin: int) -> Iterator[tuple[int, str]]:
    """Each command without its remark, those over several lines in one."""
    gathered = ""
    for number, line in enumerate(lines, start=begin):
        gathered += re.sub(r"\s+#.*$", "", line).strip()
        if gathered.endswith("\\"):
            gathered = gathered[:-1].rstrip() + " "
        elif gathered:
            yield number, gathered
            gathered = ""


def differences(step: Step, output: str) -> list[str]:
    """Lines that are shown and were not printed so; none where all is well."""
    if step.output is None:
        return []
    shown, printed = _plain(step.output, step.marks), _plain(output, step.marks)
    position = 0
    anything = False
    for line in shown:
        if line == "…":
            anything = True
            continue
        try:
            found = printed.index(line, position)
        except ValueError:
            return [f"shown: {line}", *(f"printed: {p}" for p in printed[position:])]
        if found != position and not anything:
            return [f"shown: {line}", f"printed: {printed[position]}"]
        position, anything = found + 1, False
    rest = [] if anything else printed[position:]
    return [f"printed, and not shown: {line}" for line in rest]


def _plain(text: str, marks: tuple[str, ...]) -> list[str]:
    lines = [line.rstrip() for line in text.splitlines()]
    if "seconds vary" in marks:
        lines = [SECONDS.sub("#", line) for line in lines]
    if "numbers vary" in marks:
        lines = [_without_numbers(line) for line in lines]
    return [line for line in lines if line]


def _without_numbers(line: str) -> str:
    """Words in their order: columns are as wide as their numbers."""
    words = NUMBER.sub("#", line).replace("*", "")
    return re.sub(r"[\s─━]+", " ", words).strip()


def run(step: Step, command: str | None, names: dict[str, Any]) -> dict[str, Any]:
    """Does a step in the current folder; `command` is what to run in place of it."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            if step.kind == "file":
                Path(step.marks[0]).write_text(step.text, encoding="utf-8")
            elif step.kind == "python":
                exec(compile(step.text, step.place, "exec"), names)
            else:
                code = _plato(shlex.split(command or step.text))
        except SystemExit as end:
            code = int(end.code or 0)
        except Exception:
            traceback.print_exc(file=err)
            code = 1
    return {"code": code, "out": out.getvalue(), "err": err.getvalue()}


def _plato(line: list[str]) -> int:
    from plato.cli.main import main

    if line[0] != "plato":
        raise ValueError(f"{line[0]!r} is not run here; say in the table what stands")
    with (
        mock.patch.object(sys, "argv", line),
        mock.patch("plato.cli.console.WIDTH_WHEN_PIPED", WIDTH),
    ):
        main()
    return 0


def main() -> None:
    """Runs pages, given as JSON, and prints what came of each step, a line for each.

    Of a page there are the folder to run it in and, for every step, what to run in
    place of it, or null to leave it out.
    """
    asked: dict[str, dict[str, Any]] = json.load(sys.stdin)
    sys.path.insert(0, "")
    for page, about in asked.items():
        names: dict[str, Any] = {"__name__": "__main__"}
        with contextlib.chdir(about["folder"]):
            for step, command in zip(steps(Path(page)), about["run"], strict=True):
                begun = time.monotonic()
                done = {"code": 0, "out": "", "err": ""}
                if command is not None:
                    done = run(step, command, names)
                done["seconds"] = round(time.monotonic() - begun, 1)
                print(json.dumps(done), flush=True)


if __name__ == "__main__":
    main()
