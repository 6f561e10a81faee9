"""docs/promises.md names files and make targets that exist, and each of its sections names a proof."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "promises.md").read_text()
PATHS = sorted(set(re.findall(r"`((?:daemon|handlers|tests|tsctl|docs)/[^`]+)`", PAGE)))
TARGETS = sorted(set(re.findall(r"`make ([a-z-]+)", PAGE)))
SECTIONS = re.split(r"^#{2,3} ", PAGE, flags=re.MULTILINE)[1:]


@pytest.mark.parametrize("path", PATHS)
def test_each_path_exists(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("target", TARGETS)
def test_each_target_exists(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.partition("\n")[0])
def test_each_section_names_its_proof(section: str) -> None:
    _, _, proof = section.partition("*Proof*:")

    assert re.search(r"`tests/[^`]+\.py`|`make [a-z-]+`", proof)


def test_readme_links_to_it() -> None:
    assert "(docs/promises.md)" in (ROOT / "README.md").read_text()
