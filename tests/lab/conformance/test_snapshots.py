"""A snapshot of either server starts the other: the same models, versions and settings.

Needs the real TorchServe, in the environment that `python -m tests.lab conformance` makes or TORCHSERVE_PYTHON names;
without it
these tests are skipped.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.served import Served, eventually
from tests.lab.conformance.environment import installed
from tests.lab.conformance.side import Side
from tests.lab.conformance.talk import talk
from tests.lab.conformance.torchserve import addresses, free_ports, started
from tests.lab.conformance.variants import PLAIN

PYTHON = installed()
FLAGS = ("--disable-token-auth",)
FIELDS = ("modelVersion", "modelUrl", "minWorkers", "maxWorkers", "batchSize", "maxBatchDelay", "responseTimeout")

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.slow,
    pytest.mark.skipif(PYTHON is None, reason="needs Java, and TorchServe: `python -m tests.lab conformance`"),
]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path)
    served.environment["LOG_LOCATION"] = str(tmp_path / "logs")
    served.environment.pop("TSCTL_INFERENCE_ADDRESS")  # the file names it
    yield served
    served.stop()


def get(side: Side, target: str) -> Any:
    """Return the document of TorchServe's management API."""
    answer, line = talk(side.management, f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(), 30.0)
    line.closed(answer)
    assert answer.status == 200, answer
    return json.loads(answer.body)


def predict(side: Side, model: str, body: bytes) -> bytes:
    head = f"POST /predictions/{model} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    answer, line = talk(side.inference, head.encode() + body, 60.0)
    line.closed(answer)
    assert answer.status == 200, answer
    return answer.body


def newest(folder: Path, kind: str) -> Path:
    return max(folder.glob(f"*-{kind}.cfg"))


def settings_of(described: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what both servers say of one version, by the names of its document."""
    return {name: described[0][name] for name in FIELDS}


def test_torchserve_starts_from_a_snapshot_of_tsctl(served: Served, tmp_path: Path) -> None:
    ports = free_ports()
    config = tmp_path / "config.properties"
    config.write_text(PLAIN.config(**addresses(ports), default_response_timeout=77))
    served.start("--ts-config", str(config), *FLAGS)
    for version, *options in (("1.0", "--workers", "2", "--batch-size", "4", "--max-delay", "0.25"), ("2.0",)):
        file = f"echo-{version}.mar"
        (served.store / served.pack("echo", version=version)).rename(served.store / file)
        served.tsctl("register", file, *options)
    ours = {version: settings_of([served.describe(f"echo/{version}")]) for version in ("1.0", "2.0")}
    served.stop()

    assert PYTHON is not None
    snapshot = newest(tmp_path / "logs" / "config", "shutdown")
    folder = tmp_path / "torchserve"
    folder.mkdir()
    with started(PYTHON, folder, served.store, snapshot, ports, *FLAGS) as side:
        theirs = {version: settings_of(get(side, f"/models/echo/{version}")) for version in ("1.0", "2.0")}
        default = get(side, "/models/echo")[0]["modelVersion"]
        answered = predict(side, "echo", b"hello")

    assert theirs == ours
    assert ours["1.0"]["responseTimeout"] == 77 and ours["1.0"]["minWorkers"] == 2
    assert default == "1.0"
    assert b"hello" in answered


def test_tsctl_starts_from_a_snapshot_of_torchserve(served: Served, tmp_path: Path) -> None:
    ports = free_ports()
    config = tmp_path / "config.properties"
    config.write_text(PLAIN.config(**addresses(ports), load_models="echo.mar", default_response_timeout=66))
    served.pack("echo")
    assert PYTHON is not None
    with started(PYTHON, tmp_path, served.store, config, ports, *FLAGS) as side:
        theirs = settings_of(get(side, "/models/echo"))

    served.start("--ts-config", str(newest(tmp_path / "logs" / "config", "startup")), *FLAGS)
    eventually(lambda: bool(served.describe("echo")["workers"]), "the snapshot's model is loaded")

    assert settings_of([served.describe("echo")]) == theirs
    assert theirs["responseTimeout"] == 66
