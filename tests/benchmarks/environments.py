"""The peers' virtual environments, under a folder that git ignores.

Each sees the packages of the interpreter that runs this (a .pth file names their folder), so that all
servers run the same torch, and it is installed once.
"""

import subprocess
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / ".bench"


class Missing(RuntimeError):
    """Something that a peer needs is not on this machine; the message says how to get it."""


def environment(name: str, packages: Sequence[str]) -> Path:
    """Make an environment with these packages, if it is not there yet; give its interpreter.

    Raises:
        Missing: pip could not install them.
    """
    folder = FOLDER / name
    marker, wanted = folder / ".installed", "\n".join(packages)
    python = folder / "bin" / "python"
    if marker.is_file() and marker.read_text() == wanted:
        return python
    print(f"installing {', '.join(packages)} into {folder}", flush=True)
    venv.create(folder, clear=True, with_pip=True)
    site = next((folder / "lib").glob("python3*/site-packages"))
    (site / "project.pth").write_text(sysconfig.get_path("purelib") + "\n")
    done = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages])
    if done.returncode:
        raise Missing(f"pip could not install {', '.join(packages)}; what it said is above")
    marker.write_text(wanted)
    return python


def version_in(python: Path, package: str) -> str:
    program = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([python, "-P", "-c", program], capture_output=True, text=True, check=True).stdout.strip()
