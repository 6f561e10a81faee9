"""`python -m tests.lab gpu-pack [--python 3.12] [--interpreter PATH]`: what a machine without a package index needs.

Writes into .whl/, which git ignores: the compiled wheel of this tree for the Python of that machine, and the wheels of
packages that come with no image of torch. The folder travels with the clone; first.sh and second.sh take it from there.
"""

import argparse
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.compiled import build
from tests.environments import Missing
from tests.places import ROOT

FOLDER = ROOT / ".whl"
PACKAGES = ("httptools", "msgspec", "javaproperties")
PLATFORMS = ("manylinux_2_28", "manylinux_2_17", "manylinux2014", "manylinux1")  # pip takes each for itself alone


def version_of(python: str) -> str:
    """Return `3.12`; empty if it does not run."""
    command = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


def download(version: str, into: Path) -> None:
    """Download the wheels of the packages.

    Raises:
        Missing: pip could not.
    """
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary=:all:", "--implementation", "cp", "--python-version", version]
    for name in PLATFORMS:
        command += ["--platform", f"{name}_{platform.machine()}"]
    if subprocess.run([*command, "--dest", str(into), *PACKAGES]).returncode:
        raise Missing(f"pip could not download {', '.join(PACKAGES)} for Python {version}; what it said is above")


def pack(python: str, folder: Path) -> list[Path]:
    """Write the folder anew for this interpreter's version; return the files.

    Raises:
        Missing: something could not be made; the folder is as it was.
    """
    version = version_of(python)
    if not version:
        raise Missing(f"`{python}` does not run as a Python: name one by --interpreter")
    with tempfile.TemporaryDirectory() as made:
        wheels = Path(made) / "wheels"
        wheels.mkdir()
        download(version, wheels)
        shutil.copy2(build(Path(made) / "ours", python=python), wheels)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(wheels, folder)
    return sorted(folder.iterdir())


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab gpu-pack", description="Pack for a machine with a GPU.")
    parser.add_argument("--python", default="3.12", help="the version that machine has")
    parser.add_argument("--interpreter", help="a Python of that version here; by default, that of PATH")
    given = parser.parse_args(arguments)
    try:
        for file in pack(given.interpreter or f"python{given.python}", FOLDER):
            print(f"{file.relative_to(ROOT)}  {file.stat().st_size} bytes")
    except Missing as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
