"""docs/promises.md, and the promises in guides, name files and commands that exist; each section names a proof."""

import re
from pathlib import Path

from tests.lab.programs import PROGRAMS

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "promises.md").read_text() + "".join(
    f"\n## {file.stem}\n{promised}"
    for file in sorted((ROOT / "docs" / "guides").glob("*.md"))
    if (promised := file.read_text().partition("\n## Promised\n")[2])
)
PATHS = sorted(set(re.findall(r"`((?:daemon|handlers|tests|tsctl|docs)/[^`]+)`", PAGE)))
TARGETS = sorted(set(re.findall(r"`make ([a-z-]+)", PAGE)))
PROOFS = sorted(set(re.findall(r"`python -m tests\.lab ([a-z-]+)", PAGE)))
SECTIONS = re.split(r"^#{2,3} ", PAGE, flags=re.MULTILINE)[1:]


def test_each_path_exists() -> None:
    assert len(PATHS) > 100
    assert [path for path in PATHS if not (ROOT / path).exists()] == []


def test_each_command_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()

    assert [target for target in TARGETS if re.search(rf"^{target}:", makefile, re.MULTILINE) is None] == []
    assert [name for name in PROOFS if name not in PROGRAMS] == []


def test_each_section_names_its_proof() -> None:
    proofs = {section.partition("\n")[0]: section.partition("*Proof*:")[2] for section in SECTIONS}

    assert len(proofs) > 10
    assert [
        title
        for title, proof in proofs.items()
        if not re.search(r"`tests/[^`]+\.py`|`make [a-z-]+`|`python -m tests\.lab [a-z-]+`", proof)
    ] == []


def test_readme_links_to_it() -> None:
    assert "(docs/promises.md)" in (ROOT / "README.md").read_text()
