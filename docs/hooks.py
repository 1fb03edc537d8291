"""What the site has beyond the Markdown files: its reference, and links to the code.

The files of docs/ link to source files, as a reader of the repository wants. On the
site such a link leads to the module's place in the reference; where a file has none,
its name stands as it is.
"""

import ast
import contextlib
import io
import logging
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

LOG = logging.getLogger("mkdocs.hooks")
"""What is said here breaks a strict build."""
SOURCE = Path(__file__).parent.parent / "src"
PAGES = {
    "reference/plato.md": ("The game and its use", "plato"),
    "reference/domains.md": ("Domains", "plato.domains"),
    "reference/wildfire.md": ("Wildfire", "plato.domains.wildfire"),
    "reference/policies.md": ("Policies", "plato.policies"),
    "reference/learners.md": ("Learners", "plato.learners"),
    "reference/exact.md": ("Exact solutions", "plato.exact"),
    "reference/runs.md": ("Runs", "plato.runs"),
    "reference/tuning.md": ("Tuning", "plato.tuning"),
    "reference/evaluation.md": ("Evaluation", "plato.evaluation"),
    "reference/experiments.md": ("Experiments", "plato.experiments"),
    "reference/replay.md": ("Replays", "plato.replay"),
    "reference/adapters.md": ("Adapters", "plato.adapters"),
    "reference/pages.md": ("Pages", "plato.pages"),
}
"""The pages of the reference: each holds the modules of one package."""
HIDDEN = {
    "index.md": ["navigation", "toc"],
    "tutorial.md": ["navigation"],
    "paper.md": ["toc"],
    "bounds.md": ["toc"],
    "contradictions.md": ["toc"],
}
"""Sides that pages go without: those alone in their part, and those of wide tables."""
METHODS = ("dicg", "dgn", "mohito")
COLUMNS = 96
"""Width of the help texts."""
FENCE = re.compile(r"^(```.*?^```)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[([^\]\[]+)\]\((\.[^)#\s]*)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are generated."""
    made = {
        "reference/index.md": public_names(),
        "reference/commands.md": commands(),
    } | {uri: reference(*about) for uri, about in PAGES.items()}
    for uri, text in made.items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(
    markdown: str, page: Page, config: MkDocsConfig, files: Files
) -> str:
    """Leads links to source files into the reference, and makes room for wide pages."""
    page.meta.setdefault("hide", HIDDEN.get(page.file.src_uri, []))
    here = Path(config.docs_dir, page.file.src_uri).parent
    parts = FENCE.split(markdown)
    parts[::2] = [
        LINK.sub(lambda link: _led(link, here, page, config), part)
        for part in parts[::2]
    ]
    return "".join(parts)


def _led(link: re.Match[str], here: Path, page: Page, config: MkDocsConfig) -> str:
    text, target = link[1], Path(os.path.normpath(here / link[2]))
    if target.is_relative_to(config.docs_dir):
        return link[0]
    if not target.exists():
        LOG.warning("%s: the link %s leads nowhere.", page.file.src_uri, link[2])
        return text
    if target.suffix == ".py" and target.is_relative_to(SOURCE):
        return f"[{text}][{_module(target)}]"
    return text


def _module(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def modules(package: str) -> list[str]:
    """The modules of a package, those of packages within that have no page too."""
    folder = SOURCE.joinpath(*package.split("."))
    own_pages = {SOURCE.joinpath(*of.split(".")) for _, of in PAGES.values()}
    own_pages |= {SOURCE / "plato" / "cli"}

    def found(within: Path) -> Iterator[str]:
        for path in sorted(within.iterdir()):
            if path.is_dir() and path not in own_pages:
                yield from found(path)
            elif path.suffix == ".py" and path.name != "__init__.py":
                yield _module(path)

    return list(found(folder))


def reference(title: str, package: str) -> str:
    """The page of one package."""
    parts = "\n\n".join(f"::: {name}" for name in modules(package))
    return f"# {title}\n\n{parts}\n"


def public_names() -> str:
    """What `import plato` offers, each with the first line of its docstring."""
    homes = _homes()
    rows = [
        f"| [`plato.{name}`][{home}.{name}] | {_first_line(home, name)} |"
        for name, home in homes.items()
    ]
    return "\n".join(
        [
            "# Reference",
            "",
            "Generated from the code: from docstrings, and from what "
            "[the command](commands.md) says of itself.",
            "",
            "## The public names",
            "",
            "`import plato` offers these; they are loaded when they are first used.",
            "",
            "| | |",
            "|---|---|",
            *rows,
            "",
            "## All modules",
            "",
            *(
                f"- [{title}]({uri.removeprefix('reference/')}): "
                + ", ".join(f"[`{name}`][{name}]" for name in modules(package))
                for uri, (title, package) in PAGES.items()
            ),
            "",
        ]
    )


def _homes() -> dict[str, str]:
    import plato

    return plato._HOMES


def _first_line(module: str, name: str) -> str:
    path = SOURCE.joinpath(*module.split(".")).with_suffix(".py")
    kinds = (ast.FunctionDef, ast.ClassDef)
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, kinds) and node.name == name:
            return (ast.get_docstring(node) or "").split("\n\n")[0].replace("\n", " ")
    raise LookupError(f"{module} has no {name}")


def commands() -> str:
    """Every subcommand's help, as it prints it."""
    from plato.cli.main import COMMANDS

    lines = [
        "# The plato command",
        "",
        "What `plato COMMAND --help` says of each command.",
        "",
    ]
    for name in COMMANDS:
        lines += [f"## plato {name}", "", _help(name)]
        if name == "train":
            lines += [
                "The settings of a [baseline](../baselines.md) are its own:",
                "",
                *(_help(name, "--method", method) for method in METHODS),
            ]
    return "\n".join(lines)


def _help(*line: str) -> str:
    shown = f"$ plato {' '.join(line)} --help"
    return f"```console\n{shown}\n{help_of(*line)}\n```\n"


def help_of(*line: str) -> str:
    """What the command line prints when it is asked for help."""
    from plato.cli.main import main

    out: Any = io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["plato", *line, "--help"]),
        mock.patch.dict(os.environ, COLUMNS=str(COLUMNS), NO_COLOR="1"),
        contextlib.redirect_stdout(out),
        contextlib.suppress(SystemExit),
    ):
        main()
    return "\n".join(row.rstrip() for row in out.getvalue().rstrip().splitlines())
