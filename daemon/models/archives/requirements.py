"""A Python environment for an archive's `requirements.txt`.

The environment sees every package that is installed beside the daemon, torch above all, and holds only the
additional ones. Its name is a digest of the requirements: models with equal requirements share one environment,
which is made once.
"""

import asyncio
import hashlib
import logging
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

from tsctl.daemon.core.errors import RequirementsFailed
from tsctl.daemon.marfile import Manifest
from tsctl.daemon.models.archives.manifest import read_text

_log = logging.getLogger("tsctl.daemon.models")

TIMEOUT = 1800.0  # seconds
_SHOWN_LINES = 30
_COMPLETE = "complete"  # a file in the environment, written last


def digest_of(requirements: bytes) -> str:
    """Return the name of the environment for these requirements and this interpreter."""
    return hashlib.sha256(sys.version.encode() + b"\0" + requirements).hexdigest()[:32]


def kept_python(requirements: Path, environments: Path) -> Path | None:
    """Return the interpreter of the environment for these requirements; None if there is no complete one.

    Raises:
        InvalidModel: the file is too long.
    """
    home = environments / digest_of(read_text(requirements, requirements.name))
    return home / "bin" / "python" if (home / _COMPLETE).is_file() else None


def environment_python(requirements: Path, environments: Path, model: str) -> Path:
    """Make the environment, unless it exists, and return its interpreter. Blocks for as long as pip takes.

    Args:
        environments: the directory of all environments; made if missing.
        model: the model's name, for the message.

    Raises:
        RequirementsFailed: pip could not install the requirements; the message ends with pip's last lines.
    """
    kept = kept_python(requirements, environments)
    if kept is not None:
        return kept
    digest = digest_of(read_text(requirements, requirements.name))
    home = environments / digest
    python = home / "bin" / "python"
    # An environment cannot be moved, so it is made in its place; an incomplete one is removed.
    shutil.rmtree(home, ignore_errors=True)
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
    if (
        digest_of(read_text(requirements, requirements.name)) != digest
    ):  # of a folder that is served in place: pip has read the file itself
        shutil.rmtree(home, ignore_errors=True)
        raise RequirementsFailed(
            f"The requirements of model {model} were changed while they were installed; register it again."
        )
    (home / _COMPLETE).touch()
    return python


class Environments:
    """The environments of one state directory.

    Args:
        allowed: whether the operator lets archives install requirements.
    """

    def __init__(self, folder: Path, *, allowed: bool) -> None:
        self._folder = folder
        self._allowed = allowed
        self._installing = asyncio.Lock()  # one pip at a time: two models may have the same requirements

    async def install(self, directory: Path, manifest: Manifest, progress: Callable[[int, int], None]) -> None:
        """Make the environment of a model with requirements, in a thread; log a warning if that is not allowed.

        Raises:
            RequirementsFailed: pip could not install the requirements.
        """
        assert manifest.requirements_file is not None
        if not self._allowed:
            hint = "they are not installed; `--install-requirements` allows that"
            _log.warning("%s names requirements in %s: %s", manifest.model_name, manifest.requirements_file, hint)
            return
        progress(0, 0)
        file = directory / Path(manifest.requirements_file).name
        async with self._installing:
            await asyncio.to_thread(environment_python, file, self._folder, manifest.model_name)

    def python(self, directory: Path, manifest: Manifest) -> Path | None:
        """Return the interpreter of a model with requirements, whose environment has been made; None for the daemon's.

        Raises:
            RequirementsFailed: the environment does not exist.
        """
        assert manifest.requirements_file is not None
        if not self._allowed:
            return None
        python = kept_python(directory / Path(manifest.requirements_file).name, self._folder)
        if python is None:
            raise RequirementsFailed(
                f"The Python environment of model {manifest.model_name} is missing; register the model again."
            )
        return python


def _see_ours(python: Path) -> None:
    """Let the environment import the packages installed beside the daemon, after its own."""
    inside = f"import sysconfig; print(sysconfig.get_path('purelib', vars={{'base': {str(python.parent.parent)!r}}}))"
    site = Path(_run([str(python), "-c", inside]).strip())
    ours = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    # addsitedir, not the bare path, because editable installs are in .pth files of their own.
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
