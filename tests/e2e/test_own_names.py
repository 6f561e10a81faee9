"""A project's modules may have any name but `tsctl`: those of our folders, and those that projects often have."""

import contextlib
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest

from tests.e2e.served import PATIENCE, Served
from tests.kit.archives import write_files

NAMES = ("core", "daemon", "handlers", "models", "utils")
EXPECTED = " ".join(f"my {name}" for name in NAMES)
FILES = {
    "daemon.py": b"MINE = 'my daemon'\n",
    "models.py": b"MINE = 'my models'\n",
    "core/__init__.py": b"MINE = 'my core'\n",
    "handlers/__init__.py": b"MINE = 'my handlers'\n",
    "handlers/sentiment.py": b"from words import MINE\n\ndef predict(texts: list[str]) -> list[str]:\n"
    b"    return [f'{text}: {MINE}' for text in texts]\n",
    "handlers/words.py": b"MINE = 'my words'\n",
    "utils/__init__.py": b"MINE = 'my utils'\n",
    "app.py": f"import {', '.join(NAMES)}\n\n".encode()
    + b"def predict(texts: list[str]) -> list[str]:\n"
    + f"    mine = ' '.join(each.MINE for each in ({', '.join(NAMES)}))\n".encode()
    + b"    return [f'{text}: {mine}' for text in texts]\n",
}
SCRIPT = """
import tsctl
from app import predict

with tsctl.serve(predict) as model:
    print(model.predict("script"))
"""
NOTEBOOK = """
import core, daemon, handlers, models, utils
import tsctl

def predict(texts: list[str]) -> list[str]:
    mine = ' '.join(each.MINE for each in (core, daemon, handlers, models, utils))
    return [f'{text}: {mine}' for text in texts]

with tsctl.serve(predict) as model:
    print(model.predict("notebook"))
"""
LOADED = b"""
import sys

LOADED = sorted({name.partition('.')[0] for name in list(sys.modules)})

def handle(data, context):
    return [LOADED for _ in data or []]
"""
TEST = """
from app import predict

def test_it(tsctl_serve):
    print(tsctl_serve(predict).predict("fixture"))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_files(tmp_path / "project", FILES)


def distributions_for(package: str) -> set[str]:
    """Return the distributions that one needs, directly or not, without those of its extras, and itself."""
    found, waiting = set[str](), [package]
    while waiting:
        name = waiting.pop()
        with contextlib.suppress(PackageNotFoundError):  # for another machine or Python
            if name not in found:
                wanted = [each for each in requires(name) or () if "extra ==" not in each]
                waiting += [re.split(r"[^\w.-]", each)[0].lower().replace("_", "-") for each in wanted]
                found.add(name)
    return found


def run(project: Path, *arguments: str, program: str | None = None) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], input=program, cwd=project, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_such_a_project_is_registered_from_its_file_and_from_an_archive(served: Served, project: Path) -> None:
    served.tsctl("register", str(project / "app.py"), "--name", "file")
    served.tsctl("archive", str(project / "app.py"), "--name", "packed", "--export-path", str(served.store))
    served.tsctl("register", "packed.mar")
    served.tsctl("register", str(project / "handlers" / "sentiment.py"), "--name", "beside")

    assert served.ask("/predictions/file", b"file").body == f"file: {EXPECTED}".encode()
    assert served.ask("/predictions/packed", b"archive").body == f"archive: {EXPECTED}".encode()
    assert served.ask("/predictions/beside", b"x").body == b"x: my words"


@pytest.mark.parametrize("template", [False, True], ids=["from nothing", "from the template"])
def test_a_worker_has_imported_nothing_but_ours_pythons_and_what_we_depend_on(idle: Served, template: bool) -> None:
    idle.environment["TSCTL_TEMPLATE"] = str(template).lower()
    idle.start()
    idle.tsctl("register", str(write_files(idle.folder / "own", {"names.py": LOADED}) / "names.py"))

    loaded = set(idle.ask("/predictions/names", b"x").json)

    ours = {"tsctl", "tsctl_compiled__mypyc", "names", "__main__"}
    brought, needed = packages_distributions(), distributions_for("tsctl")
    foreign = loaded - ours - sys.stdlib_module_names - {"_distutils_hack"}  # setuptools' `.pth`, in every interpreter
    assert {
        name for name in foreign if not needed & {each.lower().replace("_", "-") for each in brought.get(name, ())}
    } == set()


def test_a_script_a_notebook_and_a_test_of_such_a_project_serve_its_functions(project: Path) -> None:
    (project / "script.py").write_text(SCRIPT)
    (project / "test_app.py").write_text(TEST)

    assert run(project, "script.py") == f"script: {EXPECTED}\n"
    assert run(project, "-", program=NOTEBOOK) == f"notebook: {EXPECTED}\n"
    assert f"fixture: {EXPECTED}\n" in run(project, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "test_app.py")
