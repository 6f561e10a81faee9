"""The pages at the top of the repository, as pages of the site."""

import re
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[2]
# The page's path in the site → the file in the repository.
FILES = {
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
    "changelog.md": "CHANGELOG.md",
    "releasing.md": "RELEASING.md",
}


def project_page(file: str) -> str:
    """Return the text of a file at the top of the repository, with the links of a page in docs/."""
    text = re.sub(r"\]\(docs/", "](", (ROOT / file).read_text())
    for page, other in FILES.items():
        text = text.replace(f"]({other})", f"]({page})")
    return text


PROJECT = {page: partial(project_page, file) for page, file in FILES.items()}
