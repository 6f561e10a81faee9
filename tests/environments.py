"""Virtual environments for other servers, under folders that git ignores.

Each sees the packages of the interpreter that runs this (a .pth file names their folder), so that torch
is not installed a second time.
"""

import shutil
import subprocess
import sys
import venv
from collections.abc import Iterable, Sequence
from pathlib import Path


class Missing(RuntimeError):
    """Something that a server needs is not on this machine; the message says how to get it."""


def make_environment(folder: Path, packages: Sequence[str]) -> Path:
    """Make an environment with these packages, if it is not there yet; give its interpreter.

    Raises:
        Missing: pip could not install them.
    """
    marker, wanted = folder / ".installed", "\n".join(packages)
    python = folder / "bin" / "python"
    if marker.is_file() and marker.read_text() == wanted:
        return python
    venv.create(folder, clear=True, with_pip=bool(packages))
    site = next((folder / "lib").glob("python3*/site-packages"))
    seen = [each for each in sys.path if each.endswith("site-packages")]  # also where this one is such an environment
    (site / "project.pth").write_text("".join(f"{each}\n" for each in seen))
    if packages:
        print(f"installing {', '.join(packages)} into {folder}", flush=True)
        done = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages])
        if done.returncode:
            raise Missing(f"pip could not install {', '.join(packages)}; what it said is above")
    marker.write_text(wanted)
    return python


def make_environment_of(tree: Path, folder: Path, pths: Iterable[Path]) -> Path:
    """Make an environment in which the packages come from this one, and ours from a tree; return its interpreter.

    Nothing of this project is found there, for programs as for mypy: where this environment installs it as editable, a
    .pth file says so, and Python reads none in a folder that another .pth file names.

    Args:
        pths: .pth files of the tree.
    """
    python = make_environment(folder, [])
    site = next((folder / "lib").glob("python3*/site-packages"))
    (site / "aaa.pth").write_text(f"{tree}\n")  # read before the other ones
    for file in pths:
        shutil.copy2(file, site)
    command = python.parent / "tsctl"
    command.write_text(f"#!{python}\nimport sys\nfrom tsctl.__main__ import main\nsys.exit(main())\n")
    command.chmod(0o755)
    return python
