"""Parses the command line, runs the subcommand, and turns user errors into one line."""

import sys
from functools import reduce
from operator import or_
from typing import Annotated, Any

import tyro

import plato
from plato.cli.bounding import Bounds
from plato.cli.commands import (
    Evaluate,
    Replay,
    Setups,
    Train,
    Verify,
    Watch,
    train_command,
)
from plato.cli.comparing import Compare
from plato.cli.console import report_error
from plato.cli.reproducing import Report, Reproduce
from plato.cli.solving import Solve
from plato.cli.tuning import Tune
from plato.errors import PlatoError

COMMANDS = {
    "setups": Setups,
    "train": Train,
    "tune": Tune,
    "evaluate": Evaluate,
    "compare": Compare,
    "replay": Replay,
    "watch": Watch,
    "solve": Solve,
    "bounds": Bounds,
    "verify": Verify,
    "reproduce": Reproduce,
    "report": Report,
}

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
            _commands(sys.argv[1:]),  # pyright: ignore[reportArgumentType]
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


def _commands(arguments: list[str]) -> Any:
    """The union of all subcommands; what `train` takes depends on its --method."""
    train = {"train": train_command(_method(arguments))}
    each = (
        Annotated[command, tyro.conf.subcommand(name)]
        for name, command in (COMMANDS | train).items()
    )
    return reduce(or_, each)


def _method(arguments: list[str]) -> str:
    """The method that the command line names, looked up before it is parsed."""
    for given, following in zip(arguments, [*arguments[1:], ""], strict=True):
        name, equals, value = given.partition("=")
        if name == "--method":
            return value if equals else following
    return "plato"
