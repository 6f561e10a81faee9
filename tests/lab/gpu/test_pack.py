"""What travels to a machine without an index fits it, or is refused there in one sentence."""

import sys
import zipfile
from pathlib import Path

import pytest

from tests.environments import Missing
from tests.lab.gpu import pack, unpack

SUFFIX = ".cpython-312-x86_64-linux-gnu.so"
FILES = {
    "tsctl/daemon/http/router.py": b"routes = {}\n",
    f"tsctl/daemon/http/router{SUFFIX}": b"ELF",
    "tsctl/daemon/http/interpreted.py": b"",
    "tsctl-0.1.0.dist-info/METADATA": b"Name: tsctl\n",
}


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    file = tmp_path / "tsctl-0.1.0-cp312-cp312-linux_x86_64.whl"
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in FILES.items():
            archive.writestr(name, content)
    return file


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A clone, in which a link leads to the folder of the sources."""
    root = tmp_path / "clone"
    (root / "daemon" / "http").mkdir(parents=True)
    (root / "tsctl").mkdir()
    (root / "tsctl" / "daemon").symlink_to("../daemon")
    (root / "daemon" / "http" / "router.py").write_bytes(FILES["tsctl/daemon/http/router.py"])
    return root


def test_the_compiled_modules_come_to_lie_beside_their_sources_and_nothing_else_does(wheel: Path, tree: Path) -> None:
    assert unpack.refusal(wheel, tree, SUFFIX) == ""

    unpack.unpack(wheel, tree, tree.parent / "site")  # which lacks a module that is not compiled

    assert (tree / "daemon" / "http" / f"router{SUFFIX}").read_bytes() == b"ELF"
    assert sorted(path.name for path in tree.iterdir()) == ["daemon", "tsctl"]
    assert [path.name for path in (tree.parent / "site").iterdir()] == ["tsctl-0.1.0.dist-info"]


def test_modules_of_other_sources_are_refused(wheel: Path, tree: Path) -> None:
    (tree / "daemon" / "http" / "router.py").write_text("routes = {1: 2}\n")

    assert "made of other sources, `tsctl/daemon/http/router.py` differs" in unpack.refusal(wheel, tree, SUFFIX)


def test_modules_for_another_python_are_refused(wheel: Path, tree: Path) -> None:
    suffix = SUFFIX.replace("312", "313")

    assert f"no modules for this Python, which imports `{suffix}`" in unpack.refusal(wheel, tree, suffix)


def test_without_a_wheel_the_program_that_makes_one_is_named(tree: Path) -> None:
    assert unpack.refusal(None, tree, SUFFIX).endswith("`python -m tests.lab gpu-pack`")


def test_an_interpreter_that_only_seems_to_be_there_is_passed_over(tmp_path: Path) -> None:
    version = ".".join(map(str, sys.version_info[:2]))
    for name, text in (("seems", "exit 127"), ("is", f'exec {sys.executable} "$@"')):
        (tmp_path / name).mkdir()
        program = tmp_path / name / f"python{version}"
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)

    assert pack.interpreter(version, f"{tmp_path}/seems:{tmp_path}/is") == f"{tmp_path}/is/python{version}"
    with pytest.raises(Missing, match=f"no `python{version}` in PATH: name one by --interpreter"):
        pack.interpreter(version, str(tmp_path / "seems"))
