"""Tables that are too wide: their columns stand in parts, and no number is cut."""

from collections.abc import Sequence

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

GAP, EDGES = 3, 2
"""What a table takes between two columns, and around all of them."""


def fitting(widths: Sequence[int], room: int) -> list[range]:
    """Which columns stand side by side: as many as there is room for, at least one."""
    parts = [range(0)]
    for i, width in enumerate(widths):
        last = parts[-1]
        if last and sum(widths[j] for j in last) + width > room:
            parts.append(range(i, i + 1))
        else:
            parts[-1] = range(last.start, i + 1)
    return parts


def table_in_parts(
    labels: Sequence[str],
    sections: Sequence[Sequence[Sequence[Text]]],
    width: int,
    *,
    names: int = 1,
) -> Group:
    """A table of sections of rows, whose first columns are names and in every part."""
    widths = [
        GAP + max(map(len, [*label.splitlines(), *_column(sections, i)]))
        for i, label in enumerate(labels)
    ]
    room = width - EDGES + GAP - sum(widths[:names])
    parts = []
    for part in fitting(widths[names:], room):
        shown = [*range(names), *(names + i for i in part)]
        table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
        for i in shown:
            side = "left" if i < names else "right"
            table.add_column(labels[i], justify=side, no_wrap=True)
        for section in sections:
            for row in section:
                table.add_row(*(row[i] for i in shown))
            table.add_section()
        parts.append(table)
    return Group(*parts)


def _column(sections: Sequence[Sequence[Sequence[Text]]], number: int) -> list[str]:
    return [row[number].plain for section in sections for row in section]
