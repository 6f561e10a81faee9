"""A Python environment for an archive's `requirements.txt`.

The environment sees everything that is installed beside the daemon, torch above all, and holds only
what the archive asks for beyond that. It is named by the content of the requirements, so models
with the same ones share it, and it is made once.
"""

import hashlib
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from daemon.errors import RequirementsFailed

TIMEOUT = 1800.0  # seconds
_SHOWN_LINES = 30
_COMPLETE = "complete"  # a file in the environment, written last


def digest_of(requirements: bytes) -> str:
    """Name the environment of these requirements for this interpreter."""
    return hashlib.sha256(sys.version.encode() + b"\0" + requirements).hexdigest()[:32]


def environment_python(requirements: Path, environments: Path, model: str) -> Path:
    """Make the environment, unless it is there, and give its interpreter. Blocks for as long as pip takes.

    Args:
        environments: the directory of all environments; made if it is missing.
        model: for the message.

    Raises:
        RequirementsFailed: pip could not install them; with what pip said last.
    """
    home = environments / digest_of(requirements.read_bytes())
    python = home / "bin" / "python"
    if (home / _COMPLETE).is_file():
        return python
    shutil.rmtree(
        home, ignore_errors=True
    )  # begun and not finished: an environment cannot be moved, so it is made here
    try:
        _run([sys.executable, "-m", "venv", "--without-pip", str(home)])
        _see_ours(python)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--python", str(python)]
        _run([*pip, "install", "--upgrade-strategy", "only-if-needed", "-r", str(requirements)], requirements.parent)
    except (OSError, subprocess.SubprocessError) as error:
        shutil.rmtree(home, ignore_errors=True)
        said = getattr(error, "output", None) or str(error)
        last = "\n".join(said.rstrip().splitlines()[-_SHOWN_LINES:])
        raise RequirementsFailed(f"Custom pip package installation failed for model {model}\n\n{last}") from None
    (home / _COMPLETE).touch()
    return python


def _see_ours(python: Path) -> None:
    """Let the environment import what is installed beside the daemon; its own packages come first."""
    inside = f"import sysconfig; print(sysconfig.get_path('purelib', vars={{'base': {str(python.parent.parent)!r}}}))"
    site = Path(_run([str(python), "-c", inside]).strip())
    ours = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    # addsitedir, not the bare path: packages installed for development are in .pth files of their own.
    lines = "".join(f"import site; site.addsitedir({path!r})\n" for path in sorted(ours))
    (site / "_beside_the_daemon.pth").write_text(lines)


def _run(command: list[str], directory: Path | None = None) -> str:
    done = subprocess.run(
        command,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=TIMEOUT,
        check=True,
    )
    return done.stdout
