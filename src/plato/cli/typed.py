"""What was typed, which a parsed command line does not tell from what was left out."""

import sys
from collections.abc import Iterable


def typed_flags(arguments: Iterable[str] | None = None) -> list[str]:
    """The flags of the command line, `--actor-rate` and the like, each once."""
    given = sys.argv[1:] if arguments is None else arguments
    flags = [text.partition("=")[0] for text in given if text.startswith("--")]
    return list(dict.fromkeys(flag.replace("_", "-") for flag in flags))


def typed_of(fields: Iterable[str]) -> list[str]:
    """Those among them that set one of some fields."""
    names = {field.replace("_", "-") for field in fields}
    known = {f"--{name}" for name in names} | {f"--no-{name}" for name in names}
    return [flag for flag in typed_flags() if flag in known]
