"""Puts what a program has measured into a page of the docs."""

from pathlib import Path


def insert(page: Path, section: str, text: str) -> None:
    """Replace the text between `<!-- section -->` and `<!-- /section -->`."""
    begin, end = f"<!-- {section} -->", f"<!-- /{section} -->"
    before, _, rest = page.read_text().partition(begin)
    page.write_text(f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}")
