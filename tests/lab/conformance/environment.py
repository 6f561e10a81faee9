"""TorchServe's environment: a Java runtime, and Python packages installed by name."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.environments import Missing, make_environment

ROOT = Path(__file__).parent.parent.parent.parent
FOLDER = ROOT / ".conformance"
PACKAGES = (
    "torchserve==0.12.0",
    "torch-model-archiver==0.12.0",
    "captum",            # its vision and text handlers import it, and its requirements do not say so
    "setuptools<81",     # its archiver imports pkg_resources
    "packaging",
    "numpy",
    "pyyaml",
)  # fmt: skip
JAVA = 17


def environment() -> Path:
    """Make the environment, if it is not there yet; give its interpreter. `TORCHSERVE_PYTHON` names another.

    Raises:
        Missing: no Java, or pip could not install.
    """
    require_java()
    given = os.environ.get("TORCHSERVE_PYTHON")
    return Path(given) if given else make_environment(FOLDER, PACKAGES)


def installed() -> Path | None:
    """Return the interpreter of an environment that is there already; None without one, or without Java."""
    try:
        require_java()
    except Missing:
        return None
    python = Path(os.environ.get("TORCHSERVE_PYTHON") or FOLDER / "bin" / "python")
    return python if python.exists() else None


def require_java() -> None:
    """Raises: Missing, if TorchServe would find no runtime."""
    check_java(_java_version())


def check_java(version: str | None) -> None:
    """Raises: Missing, if this is not what `java -version` of a fitting runtime says; None: there is no java."""
    if version is None:
        hint = f"install it, on Debian as openjdk-{JAVA}-jre-headless"
        raise Missing(f"TorchServe needs a Java {JAVA} runtime, and there is no `java`: {hint}")
    match = re.search(r'version "(\d+)', version)
    if match is None or int(match[1]) < JAVA:
        first = version.strip().partition("\n")[0]
        raise Missing(f"TorchServe needs a Java {JAVA} runtime, and `java -version` says: {first}")


def _java_version() -> str | None:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    if java is None:
        return None
    return subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60).stderr


if __name__ == "__main__":
    print(environment())
    sys.exit(0)
