"""Where the benchmarks keep what they make: a folder that git ignores; in it the servers' environments."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.environments import make_environment

ROOT = Path(__file__).parent.parent.parent.parent
FOLDER = ROOT / ".bench"


def environment(name: str, packages: Sequence[str]) -> Path:
    """Make a server's environment, if it is not there yet; give its interpreter. Raises: Missing."""
    return make_environment(FOLDER / name, packages)


def version_in(python: Path, package: str) -> str:
    program = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([python, "-P", "-c", program], capture_output=True, text=True, check=True).stdout.strip()
