"""Puts the tables of results/report.md where the docs show them.

    python docs/tables.py

Each place is a comment `<!-- table: SECTION | CAPTION -->`, with the protocol in the
caption; the table after it is replaced by the report's of that name. With `| ours` at
its end it is the table without the rows that the paper prints.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
REPORT = ROOT / "results" / "report.md"
PLACE = re.compile(r"(<!-- table: (.+?) \| (.*?)( \| ours)? -->\n\n)(?:\|.*\n)*")


def table(report: str, section: str, caption: str) -> str:
    """One table of a report, by the section it is in and what is above it."""
    for part in re.split(r"^### ", report, flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("\n")
        found = re.search(rf"\*\*{re.escape(caption)}\*\*\n\n((?:\|.*\n)+)", body)
        if title == section and found:
            return found.group(1)
    raise SystemExit(f"{REPORT}: has no table {caption!r} in section {section!r}.")


def filled(page: str, report: str) -> str:
    """A page with its tables as they are in a report."""

    def fill(place: re.Match[str]) -> str:
        head, section, caption, ours = place.groups()
        lines = table(report, section, caption).splitlines(keepends=True)
        return head + "".join(x for x in lines if not (ours and "(paper) |" in x))

    return PLACE.sub(fill, page)


if __name__ == "__main__":
    path = ROOT / "docs" / "results.md"
    report = REPORT.read_text("utf-8")
    path.write_text(filled(path.read_text("utf-8"), report), "utf-8")
