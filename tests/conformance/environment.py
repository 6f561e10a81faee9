"""The environment that TorchServe runs in: made from package names, under a folder that git ignores.

It sees the packages of the interpreter that runs this (a .pth file names their folder), so that torch
is not installed a second time.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
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


class Missing(RuntimeError):
    """Something that TorchServe needs is not on this machine; the message says how to get it."""


def environment() -> Path:
    """Make the environment, if it is not there yet; give its interpreter. `TORCHSERVE_PYTHON` names another.

    Raises:
        Missing: no Java, or pip could not install.
    """
    check_java(_java_version())
    given = os.environ.get("TORCHSERVE_PYTHON")
    if given:
        return Path(given)
    python = FOLDER / "bin" / "python"
    marker = FOLDER / ".installed"
    wanted = "\n".join(PACKAGES)
    if marker.is_file() and marker.read_text() == wanted:
        return python
    print(f"making {FOLDER} with {', '.join(PACKAGES)}", flush=True)
    venv.create(FOLDER, clear=True, with_pip=True)
    site = next((FOLDER / "lib").glob("python3*/site-packages"))
    (site / "project.pth").write_text(sysconfig.get_path("purelib") + "\n")
    done = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES])
    if done.returncode:
        raise Missing(f"pip could not install {', '.join(PACKAGES)}; what it said is above")
    marker.write_text(wanted)
    return python


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
