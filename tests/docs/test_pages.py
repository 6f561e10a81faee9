"""The written pages: each is in the site, each link leads somewhere, and code that is shown is code that is tested."""

import re
from pathlib import Path

import pytest

from docs.generate import PAGES
from docs.generate.project import FILES
from tsctl.daemon.server.extensions import EXTENSIONS
from tsctl.extension import names

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SITE = (ROOT / "mkdocs.yml").read_text()
WRITTEN = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
LINK = re.compile(r"\]\((?!https?:)([^)\s#]*)(?:#([^)\s]+))?\)")


def anchors(text: str) -> set[str]:
    """Return the anchors of the headings, as mkdocs and the hosts of repositories make them."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def test_every_page_is_in_the_site_and_every_entry_is_a_page() -> None:
    entries = re.findall(r"^ +- (?:[^:\n]+: )?(\S+\.md)$", SITE, re.MULTILINE)

    written = {str(file.relative_to(DOCS)) for file in DOCS.rglob("*.md")}
    shelf = {*names(), *(extension.name for extension in EXTENSIONS)}
    guides = {f"guides/{name}.md" for name in shelf} & written  # added by docs/generate/hook.py
    assert sorted({*entries, *guides}) == sorted(written | set(PAGES))


@pytest.mark.parametrize("file", WRITTEN, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(file: Path) -> None:
    text = file.read_text()
    broken = []
    for target, anchor in LINK.findall(text):
        path = (file.parent / target).resolve() if target else file
        page = str(path.relative_to(DOCS)) if path.is_relative_to(DOCS) else ""
        found = PAGES[page]() if page in PAGES else path.read_text() if path.suffix == ".md" and path.exists() else ""
        if not (path.exists() or page in PAGES) or (anchor and anchor not in anchors(found)):
            broken.append(f"{target}#{anchor}")

    assert broken == []


@pytest.mark.parametrize("page", FILES)
def test_a_page_of_the_repository_keeps_its_links_in_the_site(page: str) -> None:
    targets = [target for target, _ in LINK.findall(PAGES[page]()) if target]

    assert [target for target in targets if target not in PAGES and not (DOCS / target).exists()] == []


@pytest.mark.parametrize(
    ("page", "example"),
    [
        ("README.md", "file-types/filetype.py"),
        ("docs/guides/handlers.md", "typed-handler/flowers.py"),
        ("docs/guides/handlers.md", "own-handler/scorer.py"),
    ],
)
def test_the_handler_that_a_page_shows_is_that_of_the_example(page: str, example: str) -> None:
    handler = (DOCS / "examples" / example).read_text()

    assert f"```python\n{handler}```" in (ROOT / page).read_text()


@pytest.mark.parametrize("file", ["own-handler/scorer.py", "typed-handler/flowers.py", "file-types/filetype.py"])
def test_the_complete_handler_has_at_most_eight_lines(file: str) -> None:
    lines = (DOCS / "examples" / file).read_text().splitlines()

    assert len([line for line in lines if line.strip()]) <= 8
