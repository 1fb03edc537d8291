"""Frozen dataclasses as configuration: from mappings and TOML, and back without loss.

The dataclass is the schema. Reading checks names and types and names the culprit by its
path (`fire.lit[1][2]`); what values make sense is checked by the class itself.
"""

import dataclasses
import numbers
import tomllib
import types
from bisect import bisect
from collections.abc import Mapping
from math import isqrt
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from plato.errors import PlatoError

T = TypeVar("T")

_LARGEST = {int: 2**31 - 1, float: 3.0e38}
"""What the arrays that the numbers end up in can hold."""
_KINDS = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text",
}


def from_mapping(cls: type[T], data: Mapping[str, Any], path: str = "") -> T:
    """Builds a configuration from nested mappings and lists, checking as it goes."""
    hints = get_type_hints(cls)
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}  # pyright: ignore[reportArgumentType]
    for name in data:
        if name not in fields:
            raise PlatoError(_unknown_field(_join(path, name), name, fields))
    for name, spec in fields.items():
        required = (
            spec.default is dataclasses.MISSING
            and spec.default_factory is dataclasses.MISSING
        )
        if required and name not in data:
            raise PlatoError(f"{_join(path, name)} is missing; add it.")
    values = {n: _convert(v, hints[n], _join(path, n)) for n, v in data.items()}
    return cls(**values)


def to_mapping(config: Any) -> dict[str, Any]:
    """The configuration as plain dicts, lists and scalars (JSON- and TOML-ready)."""
    return {
        f.name: _plain(getattr(config, f.name))
        for f in dataclasses.fields(config)
        if f.init
    }


def read_toml(path: Path) -> dict[str, Any]:
    """Parses a TOML file; a missing or malformed one is a `PlatoError`."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PlatoError(f"{path}: cannot be read ({error.strerror}).") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PlatoError(f"{path}: is not valid TOML ({error}).") from None


def to_toml(data: Mapping[str, Any]) -> str:
    """Writes scalars and lists first, then one table per nested mapping."""
    lines = [
        f"{key} = {_toml_value(value)}"
        for key, value in data.items()
        if not isinstance(value, Mapping)
    ]
    for key, value in data.items():
        if isinstance(value, Mapping):
            lines += ["", f"[{key}]", to_toml(value).rstrip("\n")]
    return "\n".join(lines) + "\n"


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _unknown_field(path: str, name: str, known: Mapping[str, Any]) -> str:
    import difflib

    if not name.isidentifier():
        return f"{path!r} is not a known field; remove it."
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"{path} is not a known field; did you mean {close[0]!r}?"
    return f"{path} is not a known field; remove it (known: {', '.join(known)})."


def _convert(value: Any, hint: Any, path: str) -> Any:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _convert_union(value, get_args(hint), path)
    if origin is Literal:
        choices = get_args(hint)
        if value not in choices:
            known = ", ".join(map(repr, choices))
            raise PlatoError(f"{path} must be one of {known}, not {value!r}.")
        return value
    if origin is tuple:
        return _convert_tuple(value, get_args(hint), path)
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise PlatoError(f"{path} must be a table of fields, not {value!r}.")
        return from_mapping(hint, value, path)  # pyright: ignore[reportArgumentType]
    return _convert_scalar(value, hint, path)


def _convert_union(value: Any, hints: tuple[Any, ...], path: str) -> Any:
    is_list = isinstance(value, (list, tuple))
    for hint in hints:
        if (get_origin(hint) is tuple) == is_list:
            return _convert(value, hint, path)
    raise PlatoError(f"{path} has the wrong form: {value!r}.")


def _convert_tuple(value: Any, items: tuple[Any, ...], path: str) -> Any:
    if not isinstance(value, (list, tuple)):
        raise PlatoError(f"{path} must be a list, not {value!r}.")
    if items[-1] is Ellipsis:
        items = (items[0],) * len(value)
    if len(items) != len(value):
        raise PlatoError(f"{path} must have {len(items)} entries, not {len(value)}.")
    return tuple(
        _convert(v, h, f"{path}[{i}]")
        for i, (v, h) in enumerate(zip(value, items, strict=True))
    )


def _convert_scalar(value: Any, hint: Any, path: str) -> Any:
    fits = (
        isinstance(value, hint)
        or (hint is float and isinstance(value, int))
        or (hint is int and isinstance(value, float) and value.is_integer())
    )
    if not fits or (isinstance(value, bool) and hint is not bool):
        raise PlatoError(f"{path} must be {_KINDS[hint]}, not {value!r}.")
    if hint in (int, float):
        # Compared as they are: converting a huge int to float would overflow.
        limit = _LARGEST[hint]
        if not -limit <= value <= limit:
            raise PlatoError(f"{path} must be a finite number of at most {limit:g}.")
    return hint(value)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return to_mapping(value)
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _toml_string(value)
    if isinstance(value, list):
        if value and isinstance(value[0], list):  # a grid: one row a line
            rows = "".join(f"  {_toml_value(row)},\n" for row in value)
            return f"[\n{rows}]"
        return f"[{', '.join(_toml_value(v) for v in value)}]"
    return repr(value)


def _toml_string(text: str) -> str:
    import json

    # A JSON string is a TOML basic string, but for DEL, which TOML wants escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def whole_number(name: str, value: Any, least: int, most: int = 2**32) -> None:
    """Refuses what is not a whole number within its bounds."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise PlatoError(f"{name} must be a whole number, not {value!r}.")
    if not least <= int(value) <= most:
        raise PlatoError(f"{name} must be from {least} to {most}, not {value}.")


def real_number(
    name: str,
    value: Any,
    least: float = 0.0,
    most: float = _LARGEST[float],
    *,
    above: bool = False,
) -> None:
    """Refuses what is not a number within its bounds; `above` leaves out the least."""
    fits = isinstance(value, numbers.Real) and least <= float(value) <= most
    if fits and not (above and value == least):
        return
    bounds = f"{'above' if above else 'at least'} {least:g}"
    if most < _LARGEST[float]:
        bounds += f" and at most {most:g}"
    raise PlatoError(f"{name} must be {bounds}, not {value}.")


def divisor(name: str, value: int, of: int, what: str) -> None:
    """Refuses what does not divide a number of things, and names what does."""
    if of % value == 0:
        return
    small = [number for number in range(1, isqrt(of) + 1) if of % number == 0]
    every = sorted({*small, *(of // number for number in small)})
    nearest = bisect(every, value)
    near = " or ".join(map(str, every[nearest - 1 : nearest + 1]))
    raise PlatoError(
        f"{name}={value} does not divide the {of} {what}; choose a divisor, such as "
        f"{near}."
    )
