"""The commands of README and docs work as typed, page by page.

Every `bash` block of a page is run, in order, in one shell and one folder, unless a comment above the block says why
not. A page of docs/examples is run in a copy of its folder. A comment at the top of another says where:

    <!-- run in docs/examples/digits -->     in a copy of that folder; without it, in an empty one
    <!-- run after docs/examples/… -->       after the commands of that page, whose daemon stays, and in its folder
    <!-- run by tests/e2e/… -->              by that test, with more claims
    <!-- needs MODULE, … -->                 without one it is skipped: `python -m tests.lab real-packages`
    <!-- not run: because … -->              above a block

Only the port differs: 8080 may be taken on the machine that runs this.
"""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.e2e.served import Served, typed
from tests.lab.real import packages

ROOT = Path(__file__).parents[2]
WRITTEN = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>[^>]+) -->\n)?```(?P<kind>\w+)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Page:
    """The commands of one page.

    Attributes:
        folder: the folder that they are run in a copy of, from the repository's; None for an empty one.
        needs: modules of packages that are not the project's.
    """

    name: str
    commands: str
    folder: Path | None
    needs: tuple[str, ...] = ()


def read(file: Path) -> Page:
    text = file.read_text()
    other = re.search(r"^<!-- run by (\S+) -->", text, re.MULTILINE)
    if other:
        assert (ROOT / other[1]).exists()
        return Page(str(file.relative_to(ROOT)), "", None)
    blocks = [block["text"] for block in BLOCK.finditer(text) if block["kind"] == "bash" and not block["reason"]]
    commands = "\n".join(blocks)
    folder = re.search(r"^<!-- run in (\S+) -->", text, re.MULTILINE)
    where = ROOT / folder[1] if folder else file.parent if "examples" in file.parts and blocks else None
    after = re.search(r"^<!-- run after (\S+) -->", text, re.MULTILINE)
    if after:
        first = read(ROOT / after[1])
        where, commands = first.folder, first.commands.replace("tsctl stop\n", "") + commands
    needs = re.search(r"^<!-- needs (.+) -->", text, re.MULTILINE)
    return Page(str(file.relative_to(ROOT)), commands, where, tuple(needs[1].split(", ")) if needs else ())


def marked(page: Page) -> ParameterSet:
    return pytest.param(page, id=page.name, marks=[pytest.mark.thin] if page.name == "README.md" else [])


PAGES = [page for page in map(read, WRITTEN) if page.commands]


@pytest.mark.parametrize("page", [marked(page) for page in PAGES])
def test_the_commands_of_a_page_work_as_typed(idle: Served, page: Page) -> None:
    if shutil.which("curl") is None:
        pytest.skip("needs the Debian program curl")
    if missing := packages.missing(page.needs):
        pytest.skip(f"`python -m tests.lab real-packages` installs what has {', '.join(missing)}")
    idle.environment |= packages.environment() if page.needs else {}
    folder = idle.folder / "typed"
    if page.folder is None:
        folder.mkdir()
    else:
        made = shutil.ignore_patterns("*.pth", "*.pt", "models", "model_store", "__pycache__")
        shutil.copytree(page.folder, folder, ignore=made)
    # The commands name a store, and users have templates.
    done = typed(idle, page.commands, folder, "TSCTL_MODEL_STORE", "TSCTL_TEMPLATE")

    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    for failure in ('"code": 4', '"code": 5'):  # curl ends with 0 whatever the status
        assert failure not in done.stdout, done.stdout


@pytest.mark.thin
@pytest.mark.parametrize("file", WRITTEN, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_block_of_commands_is_run_or_says_why_not(file: Path) -> None:
    blocks = list(BLOCK.finditer(file.read_text()))

    shells = [block for block in blocks if block["kind"] in ("sh", "shell", "console", "zsh")]
    assert [block["text"] for block in shells if not block["reason"]] == []
