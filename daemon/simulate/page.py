"""A page of the documentation that programs write a part of."""

from pathlib import Path


def insert(page: Path, section: str, text: str) -> None:
    """Replace what is between `<!-- section -->` and `<!-- /section -->`."""
    begin, end = f"<!-- {section} -->", f"<!-- /{section} -->"
    before, _, rest = page.read_text().partition(begin)
    page.write_text(f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}")
