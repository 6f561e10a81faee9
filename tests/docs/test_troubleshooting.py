"""Each message that the page, or an entry of a guide, quotes is one that the program prints: a search finds it."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "troubleshooting.md"
QUOTED = re.findall(r"```text\n(.*?)\n```", PAGE.read_text(), re.DOTALL)
for guide in sorted((ROOT / "docs/guides").glob("*.md")):  # answers of what may be left out
    QUOTED += re.findall(r"^### \d{3}: .*\n\n```text\n(.*?)\n```", guide.read_text(), re.MULTILINE)
ANY = "…"  # names and numbers
_SLOT = "\0"


def _texts(tree: ast.AST) -> Iterator[str]:
    """Yield every string of a module, as the parser joins it, with a mark for each value that is formatted into it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else _SLOT for part in node.values]
            yield "".join(map(str, parts))


@cache
def printed() -> list[str]:
    files = [file for part in ("daemon", "handlers", "tsctl") for file in (ROOT / part).rglob("*.py")]
    return [text for file in files for text in _texts(ast.parse(file.read_text()))]


def is_printed(message: str) -> bool:
    """Return whether one string of the program has the parts of a message, in their order, with values between them."""
    between = f"[^{_SLOT}]{{0,40}}{_SLOT}.*?"
    pattern = re.compile(between.join(map(re.escape, message.strip(ANY).split(ANY))), re.DOTALL)
    return any(pattern.search(text) for text in printed())


@pytest.mark.parametrize("message", QUOTED)
def test_a_quoted_message_is_one_that_the_program_prints(message: str) -> None:
    assert is_printed(message)


def test_a_message_that_nobody_prints_is_found_out() -> None:
    assert not is_printed("no demon at `…`")
    assert not is_printed("no daemon at `…` of the moon")


def test_every_entry_has_a_message_or_a_command_and_titles_are_searched_for() -> None:
    entries = re.split(r"^### ", PAGE.read_text(), flags=re.MULTILINE)[1:]

    assert len(entries) > 30
    for entry in entries:
        title, _, text = entry.partition("\n")
        assert "```text" in text or "`tsctl" in text, title
        assert len(text.split("```")[-1].strip()) > 40, f"no cause and remedy: {title}"
