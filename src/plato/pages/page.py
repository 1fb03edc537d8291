"""Self-contained web pages: one file, no network, the look of `style.css`."""

import html
import json
import re
from collections.abc import Sequence
from importlib import resources
from typing import Any

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>
{style}
</style>
</head>
<body>
{body}
{data}
{scripts}
</body>
</html>
"""


def page(
    title: str,
    body: str,
    *,
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
    data: dict[str, Any] | None = None,
) -> str:
    """A page of the given HTML; scripts run in one scope, after the body.

    `data` is put in for scripts to read, by the id of its element: text as it is,
    anything else as JSON.
    """
    shared = asset("plato.pages", "style.css")
    code = "\n".join(scripts)
    return _PAGE.format(
        title=html.escape(title),
        style="\n".join([shared, *styles]),
        body=body,
        data="\n".join(_datum(name, value) for name, value in (data or {}).items()),
        scripts=f'<script>\n(() => {{\n"use strict";\n{code}\n}})();\n</script>'
        if scripts
        else "",
    )


def prose(text: str) -> str:
    """Text as HTML, what is between backticks as code."""
    return re.sub("`(.+?)`", r"<code>\1</code>", html.escape(text))


def asset(package: str, name: str) -> str:
    """The text of a file that comes with a package."""
    return (resources.files(package) / name).read_text(encoding="utf-8")


def _datum(name: str, value: Any) -> str:
    kind = "text/plain" if isinstance(value, str) else "application/json"
    text = value if isinstance(value, str) else json.dumps(value, allow_nan=False)
    # Within a script element nothing is escaped; what could end it must not occur.
    text = text.replace("<", "\\u003c")
    return f'<script type="{kind}" id="{html.escape(name)}">{text}</script>'
