"""The table for the terminal, and the counts on the page docs/torchserve.md."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.lab.conformance.report import MOVING, PAGE
from tests.lab.torchserve.verdict import Outcome, Row, counts

BEGIN, END = "<!-- tests.lab.torchserve -->", "<!-- end of tests.lab.torchserve -->"
# The page is written from the other text: the counts are put into both, so that neither command undoes the other.
PAGES = (MOVING, PAGE)

Judged = Mapping[str, Sequence[Row]]  # part → rows


def table(judged: Judged) -> str:
    """Return the terminal's output: a line for each case, and the counts of each part."""
    lines: list[str] = []
    for part, rows in judged.items():
        lines += [f"{row.outcome.value:38}  {row.name}{f'  ({row.why})' if row.why else ''}" for row in rows]
        lines += [f"{part}: {counts(rows)}", ""]
    return "\n".join(lines)


def failed(judged: Judged) -> bool:
    """Return whether a case fails by a defect."""
    return any(row.outcome is Outcome.DEFECT for rows in judged.values() for row in rows)


def section(judged: Judged, commit: str) -> str:
    """Return the text between the marks."""
    lines = [
        f"`make torchserve-examples` tries what TorchServe's repository documents (commit {commit}), without GPU and",
        "network, with random weights:",
        "",
        *(f"* {part}: {counts(rows)}" for part, rows in judged.items()),
    ]
    return "\n".join(lines)


def replaced(page: str, text: str) -> str:
    """Return a page with other text between its marks.

    Raises:
        ValueError: the page has no marks.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no `{BEGIN}` … `{END}`")
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def write(judged: Judged, commit: str, pages: Sequence[Path] = PAGES) -> None:
    """Put the counts between the marks of the pages."""
    for page in pages:
        page.write_text(replaced(page.read_text(), section(judged, commit)))
