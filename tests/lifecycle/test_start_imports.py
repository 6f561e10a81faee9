"""A start of the daemon imports what it needs, and no more: each module delays the first answer."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

MOST = 800  # modules, those of the interpreter included: 792 on Python 3.11
# Packages that are installed beside the daemon, or that a start once imported: torch alone takes 1.2 s.
UNWANTED = {
    "click", "email.mime", "fsspec", "grpc", "huggingface_hub", "jinja2", "numpy", "opentelemetry", "PIL", "pydantic",
    "ray", "requests", "rich", "sympy", "torch", "torchvision",
}  # fmt: skip


def imports_of_a_start(folder: Path) -> list[str]:
    """Return the modules that a daemon without models has imported until it listens, in this order."""
    reading, writing = os.pipe()
    command: list[str | Path] = [
        sys.executable, "-P", "-X", "importtime", "-m", "tsctl.daemon", "--socket", folder / "s",
        "--state-dir", folder / "state", "--inference-address", "127.0.0.1:0", "--template", "false",
        "--ready-fd", str(writing),
    ]  # fmt: skip
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, pass_fds=[writing]
    ) as daemon:
        os.close(writing)
        with open(reading) as ready:
            assert "inference" in ready.read()
        daemon.send_signal(signal.SIGTERM)
        _, told = daemon.communicate(timeout=60)
    lines = [
        line.removeprefix("import time:").split("|") for line in told.splitlines() if line.startswith("import time:")
    ]
    return [parts[2].strip() for parts in lines[1:]]


def test_a_start_imports_few_modules_and_none_of_the_heavy_ones(tmp_path: Path) -> None:
    found = imports_of_a_start(tmp_path)

    heavy = {name for name in found if any(name == each or name.startswith(f"{each}.") for each in UNWANTED)}
    assert heavy == set()
    assert "tsctl.daemon.server.assembly" in found
    assert len(found) <= MOST, f"{len(found)} modules"
