"""Tables of text as console, Markdown and LaTeX."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Literal

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from plato.evaluation.fitting import fitting
from plato.evaluation.layout import Entry, Report, Row, Table
from plato.pages.page import prose

PADDING = 1
GAP = PADDING + 1
"""Between two columns of the console: padding, and the place of a line."""
STAR = "*"
NARROW = 8
"""Columns from which a LaTeX table takes the whole width."""
HELD = 6
"""Tables of a LaTeX page of its own after which it is told to print what it holds: it
gives up when too many wait for a place."""

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "×": r"$\times$",
    "±": r"$\pm$",
    "→": r"$\to$",
    "−": "$-$",
    "[": "{[}",  # at the beginning of a row it would be an option of the last one
    "<": "$<$",
    ">": "$>$",
    "–": "--",
    "’": "'",
} | {character: f"\\{character}" for character in "&%$#_{}"}

_LATEX_HEAD = r"""% Compiles as it is with pdflatex, and can be \input into a document
% that loads booktabs and graphicx. What follows asks whether one has begun.
\expandafter\ifx\csname @nodocument\endcsname\relax
  \let\platoend\relax
  \let\platopage\relax
\else
  \documentclass{article}
  \usepackage[T1]{fontenc}
  \usepackage[margin=2cm]{geometry}
  \usepackage{booktabs,graphicx}
  \begin{document}
  \def\platoend{\end{document}}
  \let\platopage\clearpage
\fi
"""


@dataclass(frozen=True)
class Heading:
    """What stands above tables of a LaTeX document."""

    title: str
    text: str = ""
    """Lines of it are paragraphs."""
    level: Literal["section", "subsection"] = "section"


def console_tables(report: Report, width: int) -> RenderableType:
    """One table for each group of columns, in parts where it is too wide."""
    parts = []
    for table in report.tables:
        for one in table.by_group():
            parts += [_console(part, report) for part in _fitting(one, width)]
    note = report.note.replace("Bold:", f"Bold ({STAR}):")
    return Group(*parts, Text(note, style="dim"))


def markdown(report: Report) -> str:
    """One table for each group of columns, and the note."""
    blocks = []
    for table in report.tables:
        for one in table.by_group():
            header = ["", *(_bar(column.label) for column in one.columns)]
            lines = [header, ["---", *["---:"] * len(one.columns)]]
            for section in one.sections:
                for row in section:
                    cells = [_markdown_entry(entry) for entry in row.entries]
                    lines.append([_bar(row.label), *cells])
            title = f"**{_bar(_title(one, report))}**"
            rows = "\n".join(f"| {' | '.join(line)} |" for line in lines)
            blocks.append(f"{title}\n\n{rows}")
    return "\n\n".join([*blocks, report.note]) + "\n"


def html(report: Report) -> str:
    """One table for each group of columns, and the note."""
    blocks = []
    for table in report.tables:
        for one in table.by_group():
            head = "".join(f"<th scope=col>{escape(c.label)}</th>" for c in one.columns)
            bodies = "".join(
                f"<tbody>{''.join(map(_html_row, section))}</tbody>"
                for section in one.sections
            )
            title = escape(_capital(_title(one, report)))
            blocks.append(
                f"<figure class=table><table><caption>{title}</caption>"
                f"<thead><tr><td></td>{head}</tr></thead>{bodies}</table></figure>"
            )
    return "\n".join([*blocks, f"<p class=note>{prose(report.note)}</p>"])


def latex(*parts: Report | Heading) -> str:
    """The layout of the paper's tables: groups side by side, booktabs rules."""
    blocks, number, held = [_LATEX_HEAD], 0, 0
    for part in parts:
        if isinstance(part, Heading):
            # Tables float: those above a heading must not come after it.
            blocks += [r"\platopage"] if held else []
            blocks.append(_latex_heading(part))
            held = 0
            continue
        for table in part.tables:
            if held == HELD:
                blocks.append(r"\platopage")
                held = 0
            number, held = number + 1, held + 1
            blocks.append(_latex_table(table, part, number))
    return "\n\n".join([*blocks, "\\platoend\n"])


def _title(table: Table, report: Report) -> str:
    group = table.columns[0].group
    return ", ".join(part for part in (table.title, group, report.protocol) if part)


def _console(table: Table, report: Report) -> RenderableType:
    shown = RichTable(
        box=box.SIMPLE_HEAD,
        header_style="bold",
        padding=(0, PADDING),
        pad_edge=False,
        collapse_padding=True,
    )
    shown.add_column("", no_wrap=True)
    for column in table.columns:
        label = Text(f"{column.label} ")  # over the numbers, not over the stars
        shown.add_column(label, justify="right", no_wrap=True)
    for section in table.sections:
        for row in section:
            shown.add_row(Text(row.label), *map(_console_entry, row.entries))
        shown.add_section()
    return Group(Text(_title(table, report), "bold"), shown)


def _console_entry(entry: Entry) -> Text:
    """Bold with a star, which stays where colours get lost."""
    if entry.bold:
        return Text(f"{entry.text}{STAR}", "bold green")
    return Text(f"{entry.text} ")


def _fitting(table: Table, width: int) -> Iterator[Table]:
    """The table in parts of as many columns as fit, at least one each."""
    rows = [row for section in table.sections for row in section]
    first = max(len(row.label) for row in rows) + GAP
    widths = [
        max([len(column.label), *(len(row.entries[i].text) for row in rows)])
        + len(STAR)
        + GAP
        for i, column in enumerate(table.columns)
    ]
    room = width - GAP - first  # the edges, and the names
    for part in fitting(widths, room):
        yield table.take([i in part for i in range(len(widths))])


def _html_row(row: Row) -> str:
    cells = "".join(
        f"<td><strong>{escape(entry.text)}</strong></td>"
        if entry.bold
        else f"<td>{escape(entry.text)}</td>"
        for entry in row.entries
    )
    return f"<tr><th scope=row>{escape(row.label)}</th>{cells}</tr>"


def _markdown_entry(entry: Entry) -> str:
    return f"**{entry.text}**" if entry.bold else entry.text


def _bar(text: str) -> str:
    return text.replace("|", "\\|")


def _latex_heading(heading: Heading) -> str:
    lines = [rf"\{heading.level}{{{_tex(heading.title)}}}"]
    return "\n\n".join(lines + [_tex(line) for line in heading.text.splitlines()])


def _latex_table(table: Table, report: Report, number: int) -> str:
    columns = len(table.columns)
    groups = [len(one.columns) for one in table.by_group()]
    spec = "||".join("|".join("r" * size) for size in groups)
    share = min(1.0, 0.15 + 0.85 * columns / NARROW)
    title = _capital(table.title) or table.columns[0].group
    body = "\n\\midrule\n".join(
        "\n".join(
            " & ".join([_tex(row.label), *map(_latex_entry, row.entries)]) + r" \\"
            for row in section
        )
        for section in table.sections
    )
    return "\n".join(
        [
            r"\begin{table*}[!ht]",
            r"\centering",
            r"\setlength{\tabcolsep}{1.4pt}",
            r"\renewcommand{\arraystretch}{1.02}",
            rf"\resizebox{{{share:.2g}\linewidth}}{{!}}{{%",
            rf"\begin{{tabular}}{{@{{\hspace{{2pt}}}}l|{spec}@{{\hspace{{2pt}}}}}}",
            r"\toprule",
            *_latex_groups(table, groups),
            "Model & " + " & ".join(_latex_heads(table, groups)) + r" \\",
            r"\midrule",
            body,
            r"\bottomrule",
            r"\end{tabular}%",
            r"}",
            rf"\caption{{{_tex(title)}. {_tex(report.note)}}}",
            rf"\label{{tab:comparison-{number}}}",
            r"\end{table*}",
        ]
    )


def _latex_groups(table: Table, groups: list[int]) -> Iterator[str]:
    """The line above the heads, and the rules below it."""
    cells, rules, begin = [], [], 2
    for i, (size, one) in enumerate(zip(groups, table.by_group(), strict=True)):
        border = "||" if i < len(groups) - 1 else ""
        text = _tex(one.columns[0].group)
        cells.append(rf"\multicolumn{{{size}}}{{c{border}}}{{{text}}}")
        rules.append(rf"\cmidrule(lr){{{begin}-{begin + size - 1}}}")
        begin += size
    yield " & " + " & ".join(cells) + r" \\"
    yield "".join(rules)


def _latex_heads(table: Table, groups: list[int]) -> Iterator[str]:
    last_of_group = {sum(groups[: i + 1]) - 1 for i in range(len(groups))}
    for i, column in enumerate(table.columns):
        border = "||" if i in last_of_group else "|"
        if i == len(table.columns) - 1:
            border = ""
        yield rf"\multicolumn{{1}}{{c{border}}}{{{_tex(column.label)}}}"


def _latex_entry(entry: Entry) -> str:
    text = _tex(entry.text.replace(" ± ", "±"))
    return rf"\textbf{{{text}}}" if entry.bold else text


def _tex(text: str) -> str:
    """Text as LaTeX, with minus signs before numbers and `code` as such."""
    text = re.sub(r"(?<![\w–-])-(?=\d)", "−", text)
    text = "".join(_LATEX.get(character, character) for character in text)
    return re.sub(r"`([^`]+)`", r"\\texttt{\1}", text)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
