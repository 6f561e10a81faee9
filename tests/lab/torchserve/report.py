"""The table for the terminal, and the counts on the page docs/torchserve.md."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.lab.conformance.report import MOVING, PAGE
from tests.lab.torchserve.verdict import Outcome, Row, counts

EXAMPLES = "tests.lab.torchserve"  # the names of the sections: the commands that write them
SUITES = "tests.lab.torchserve.suites"
COMMANDS = {EXAMPLES: "torchserve-examples", SUITES: "torchserve-tests"}
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


def section(name: str, judged: Judged, commit: str) -> str:
    """Return the text of a section, between its marks."""
    if name == EXAMPLES:
        done = "tries what TorchServe's repository documents"
        how = "without GPU and\nnetwork"
    else:
        done, how = "runs TorchServe's own tests", "with a `torchserve` that calls\ntsctl"
    lines = [
        f"`python -m tests.lab {COMMANDS[name]}` {done} (commit {commit}), {how}:",
        "",
        *(f"* {part}: {counts(rows)}" for part, rows in judged.items()),
    ]
    return "\n".join(lines)


def marks(name: str) -> tuple[str, str]:
    """Return the lines before and after a section."""
    return f"<!-- {name} -->", f"<!-- end of {name} -->"


def replaced(page: str, name: str, text: str) -> str:
    """Return a page with other text in a section.

    Raises:
        ValueError: the page has no marks of it.
    """
    before, begin, rest = page.partition(marks(name)[0])
    _, end, after = rest.partition(marks(name)[1])
    if not begin or not end:
        raise ValueError(f"the page has no `{marks(name)[0]}` … `{marks(name)[1]}`")
    return f"{before}{begin}\n{text}\n{end}{after}"


def write(name: str, judged: Judged, commit: str, pages: Sequence[Path] = PAGES) -> None:
    """Put the counts into a section of the pages."""
    for page in pages:
        page.write_text(replaced(page.read_text(), name, section(name, judged, commit)))
