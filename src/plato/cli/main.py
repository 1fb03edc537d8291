"""Parses the command line, runs the subcommand, and turns user errors into one line."""

import sys
from typing import Annotated

import tyro

import plato
from plato.cli.bounding import Bounds
from plato.cli.commands import Evaluate, Reproduce, Setups, Train, Verify
from plato.cli.comparing import Compare
from plato.cli.console import report_error
from plato.cli.solving import Solve
from plato.errors import PlatoError

Command = (
    Annotated[Setups, tyro.conf.subcommand("setups")]
    | Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[Evaluate, tyro.conf.subcommand("evaluate")]
    | Annotated[Compare, tyro.conf.subcommand("compare")]
    | Annotated[Solve, tyro.conf.subcommand("solve")]
    | Annotated[Bounds, tyro.conf.subcommand("bounds")]
    | Annotated[Verify, tyro.conf.subcommand("verify")]
    | Annotated[Reproduce, tyro.conf.subcommand("reproduce")]
)

DESCRIPTION = f"""PLATO {plato.__version__}: learning to point at tasks in open systems.

Start with `plato setups`, then
`plato evaluate --policy weakest --setup wildfire-3x3-S3`."""


def main() -> None:
    """The entry point of the `plato` command."""
    if sys.argv[1:] == ["--version"]:
        print(f"plato {plato.__version__}")
        return
    try:
        command = tyro.cli(
            Command,  # pyright: ignore[reportArgumentType]
            prog="plato",
            description=DESCRIPTION,
            config=(tyro.conf.OmitArgPrefixes,),
        )
        code = command.run()
        sys.stdout.flush()
    except PlatoError as error:
        report_error(error)
        code = 2
    except BrokenPipeError:  # the reader of our output left, as `head` does
        sys.stderr.close()
        code = 1
    except KeyboardInterrupt:
        print("plato: stopped.", file=sys.stderr)
        code = 130
    sys.exit(code)
