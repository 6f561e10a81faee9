"""Virtual environments for other servers, under folders that git ignores.

Each sees the packages of the interpreter that runs this (a .pth file names their folder), so that torch
is not installed a second time.
"""

import subprocess
import sys
import venv
from collections.abc import Sequence
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
