"""Runs the tests on what a wheel installs: `python -m tests.compiled [ARGUMENT OF PYTEST …]`.

An editable installation runs the sources, as the other tests do. Here the wheel's compiled modules lie beside a copy
of them, in a folder that git ignores, with an interpreter of its own that sees the packages of this one.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tests.environments import Missing, make_environment_of
from tests.places import ROOT, place_of

FOLDER = ROOT / ".compiled"
OTHERS = (
    ".clients",
    ".deploy",
    ".real",
)  # of others, that tests run: installed in the project's folder
COMPILED = "TSCTL_TESTED_COMPILED"  # in the environment of tests that run on compiled modules
# Tests of all of them, and of programs that run the daemon's objects, which hold compiled ones.
FURTHER = ("tests/test_compiled_modules.py", "tests/lab/")


@cache
def modules() -> list[str]:
    """Return the paths of the modules that a wheel compiles."""
    # Here, as the hook needs hatchling: a machine without an index may lack that, and runs tests, too (tests/lab/gpu).
    from hatch_build import with_extensions

    targets = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    return with_extensions(targets["wheel"]["hooks"]["custom"]["modules"], ROOT)


@cache
def touches_compiled(file: Path) -> bool:
    """Return whether the tests in a file run on compiled modules.

    They do if they are in the folder of such a module, tests/http for daemon/http and tests/handlers/typed for
    handlers/typed, or name one.
    """
    tested = {place_of(module).rpartition("/")[0].removeprefix("daemon/") for module in modules()} - {"handlers"}
    if file.relative_to(ROOT).as_posix().startswith((*(f"tests/{each}/" for each in tested), *FURTHER)):
        return True
    names = "|".join(re.escape(module.removesuffix(".py").replace("/", ".")) for module in modules())
    return re.search(rf"\b(?:{names})\b", file.read_text()) is not None


def build(into: Path, source: Path = ROOT, python: str = sys.executable) -> Path:
    """Build the wheel of this tree, or of another one, compiled; give its path.

    Args:
        python: the interpreter that it is for.

    Raises:
        Missing: it could not be built.
    """
    shutil.rmtree(into, ignore_errors=True)
    command = [python, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    done = subprocess.run([*command, "-w", into, source], env=os.environ | {"TSCTL_COMPILE": "1"})
    if done.returncode:
        raise Missing("the wheel could not be built; what pip said is above")
    return next(into.glob("tsctl-*.whl"))


def build_once(into: Path) -> Path:
    """Build the wheel of this tree, unless the one that is there was built of the same files by the same Python.

    Raises:
        Missing: it could not be built.
    """
    marker, wanted = into / "built-of", digest()
    if not marker.is_file() or marker.read_text() != wanted:
        build(into)
        marker.write_text(wanted)
    return next(into.glob("tsctl-*.whl"))


def digest() -> str:
    """Return a digest of all that a wheel is built of: every file but the tests, the Python, words for the compiler."""
    found = hashlib.sha256(sys.version.encode())
    for name in ("CC", "CFLAGS", "LDFLAGS", "LDSHARED"):
        found.update(f"\0{name}={os.environ.get(name)}".encode())
    for name in sorted(listed()):
        if not name.startswith("tests/"):
            file = ROOT / name
            content = os.fsencode(file.readlink()) if file.is_symlink() else file.read_bytes()
            found.update(f"\0{name}\0{len(content)}\0".encode() + content)
    return found.hexdigest()


def listed() -> list[str]:
    """Return the names of all files, and links, that git would have."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split("\0")  # fmt: skip
    return [name for name in names if name and ((ROOT / name).is_symlink() or (ROOT / name).is_file())]


def lay_out(wheel: Path, tree: Path) -> None:
    """Make a tree of all that git would have, with the wheel's compiled modules and `.pth` files in their places."""
    shutil.rmtree(tree, ignore_errors=True)
    for name in listed():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tree / name, follow_symlinks=False)
    for name in OTHERS:
        if (ROOT / name).is_dir():
            (tree / name).symlink_to(ROOT / name)
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".so") or ("/" not in name and name.endswith(".pth")):
                archive.extract(name, tree)


TREE = FOLDER / "tree"


@cache
def compiled() -> Path:
    """Make all of this, once; give the interpreter.

    Raises:
        Missing: it could not be built.
    """
    lay_out(build_once(FOLDER / "wheel"), TREE)
    return make_environment_of(TREE, FOLDER / "environment", TREE.glob("*.pth"))


def run_compiled(module: str, arguments: Sequence[str | Path]) -> int:
    """Run a program of this tree on the compiled modules; return its exit code.

    Raises:
        Missing: they could not be built.
    """
    command = [compiled(), "-m", module, *arguments]
    return subprocess.run(command, cwd=TREE, env=os.environ | {COMPILED: "1"}).returncode


def main(arguments: Sequence[str]) -> int:
    python = compiled()
    path = os.pathsep.join(map(str, (python.parent, ROOT / ".tools", os.environ["PATH"])))
    command: list[str | Path] = [python, "-m", "pytest", *arguments]
    return subprocess.run(command, cwd=TREE, env=os.environ | {"PATH": path, COMPILED: "1"}).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
