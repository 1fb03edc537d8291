"""Parses the command line, runs the subcommand, and turns user errors into one line."""

import os
import sys
from functools import reduce
from itertools import pairwise
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
    command = None
    try:
        command = parsed(sys.argv[1:])
        code = command.run()
        sys.stdout.flush()
    except PlatoError as error:
        report_error(error)
        code = 2
    except BrokenPipeError:  # the reader of our output left, as `head` does
        sys.stderr.close()
        code = 1
    except KeyboardInterrupt:
        later = getattr(command, "when_stopped", "")
        print(f"plato: stopped. {later}".rstrip(), file=sys.stderr, flush=True)
        code = 130
        if getattr(command, "leaves_threads", False):
            # An exit would wait for compilers in them, which do not let go for minutes.
            sys.stdout.flush()
            os._exit(code)
    sys.exit(code)


def parsed(arguments: list[str]) -> Any:
    """The subcommand that a command line asks for, with its flags."""
    name, *flags = arguments or [""]
    method = _method(flags)
    commands = COMMANDS | {"train": train_command(method)}
    if name not in commands:
        return _parsed(_any_of(commands), "plato", arguments, DESCRIPTION)
    # By itself, so that who gets a flag wrong is sent to the help that has it.
    called = f"plato {name}"
    if commands[name] is not COMMANDS[name]:
        called += f" --method {method}"
    return _parsed(commands[name], called, flags)


def _parsed(kind: Any, called: str, flags: list[str], about: str | None = None) -> Any:
    return tyro.cli(
        kind,
        prog=called,
        args=flags,
        description=about,
        config=(tyro.conf.OmitArgPrefixes,),
    )


def _any_of(commands: dict[str, type]) -> Any:
    """The union of subcommands."""
    each = (
        Annotated[command, tyro.conf.subcommand(name)]
        for name, command in commands.items()
    )
    return reduce(or_, each)


def _method(arguments: list[str]) -> str:
    """The method that `plato train` is given: what else it takes depends on it."""
    for given, following in pairwise([*arguments, ""]):
        name, equals, value = given.partition("=")
        if name == "--method":
            return value if equals else following
    return "plato"
