"""A compiled wheel of the working tree, and one of another commit, each in an environment of its own."""

import subprocess
import zipfile
from pathlib import Path

from tests.compiled import build, build_once
from tests.environments import make_environment
from tests.lab.benchmarks.environments import FOLDER
from tests.places import ROOT

PLACE = FOLDER / "guard"


def of_this_tree() -> Path:
    """Build the working tree; return its interpreter.

    Raises:
        Missing: it could not be built.
    """
    return installed(build_once(PLACE / "now" / "wheel"), PLACE / "now")


def of_commit(commit: str) -> Path:
    """Build a commit, if that was not done before; return its interpreter.

    Args:
        commit: its full hash.

    Raises:
        Missing: it could not be built.
    """
    place = PLACE / commit
    wheel = next(iter((place / "wheel").glob("*.whl")), None)
    if wheel is None:
        source = place / "source"
        source.mkdir(parents=True, exist_ok=True)
        packed = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
        subprocess.run(["tar", "-x", "-C", source], input=packed, check=True)
        wheel = build(place / "wheel", source)
    return installed(wheel, place)


def installed(wheel: Path, place: Path) -> Path:
    """Unpack a wheel before the packages of this environment; return the interpreter that finds it.

    Raises:
        Missing: the environment could not be made.
    """
    tree = place / "tree"
    subprocess.run(["rm", "-rf", tree], check=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tree)
    python = make_environment(place / "environment", [])
    site = next((place / "environment" / "lib").glob("python3*/site-packages"))
    (site / "aaa.pth").write_text(f"{tree}\n")  # read before the one that names this environment's packages
    return python
