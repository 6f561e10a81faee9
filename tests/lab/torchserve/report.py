"""The table for the terminal, and the counts on the page docs/torchserve.md."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.lab.conformance.report import MOVING, PAGE
from tests.lab.torchserve.verdict import Outcome, Row, counts

MARKS = "<!-- tests.lab.torchserve -->", "<!-- end of tests.lab.torchserve -->"  # before and after the counts
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
    return "\n".join((
        f"`python -m tests.lab torchserve-tests` runs TorchServe's own tests (commit {commit}), with a `torchserve`",
        "that calls tsctl:",
        "",
        *(f"* {part}: {counts(rows)}" for part, rows in judged.items()),
    ))  # fmt: skip


def replaced(page: str, text: str) -> str:
    """Return a page with other text between the marks.

    Raises:
        ValueError: the page has no marks.
    """
    before, begin, rest = page.partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not begin or not end:
        raise ValueError(f"the page has no `{MARKS[0]}` … `{MARKS[1]}`")
    return f"{before}{begin}\n{text}\n{end}{after}"


def write(judged: Judged, commit: str, pages: Sequence[Path] = PAGES) -> None:
    """Put the counts into the pages."""
    for page in pages:
        page.write_text(replaced(page.read_text(), section(judged, commit)))
