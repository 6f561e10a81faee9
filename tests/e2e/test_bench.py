"""`tsctl bench` against a real daemon."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.certificate import make_certificate, needs_openssl
from tests.e2e.served import PATIENCE, TSCTL, Served


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "body").write_text("x" * 100)
    return tmp_path / "body"


@needs_openssl
def test_a_closed_loop_sends_as_many_requests_as_asked_over_tls_with_a_token_of_the_daemons(
    idle: Served, text: Path
) -> None:
    token = idle.folder / "token"
    token.touch(0o600)
    token.write_text("a-token-for-predictions")
    idle.start(*make_certificate(idle.folder).flags, "--inference-token-file", str(token))
    idle.register("echo", "--batch-size", "4", "--max-delay", "0")

    found = json.loads(idle.tsctl("bench", "echo", str(text), "-n", "200", "-c", "4", "--json"))

    assert (found["requests"], found["errors"], found["statuses"]) == (200, 0, {"200": 200})
    assert sum(bar["count"] for bar in found["histogram"]) == 200
    assert sum(int(size) * count for size, count in found["batches"]["sizes"].items()) == 201  # and the first
    assert (
        0 < found["latency"]["min"] <= found["latency"]["p50"] <= found["latency"]["p99.9"] <= found["latency"]["max"]
    )


def test_ctrl_c_gives_the_result_so_far(shared: Served, text: Path) -> None:
    command = [str(TSCTL), "bench", "echo", str(text), "-t", "600", "--json"]
    ignored = signal.signal(signal.SIGINT, signal.default_int_handler)  # where the tests run in a shell's background
    try:
        process = subprocess.Popen(command, env=shared.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    finally:
        signal.signal(signal.SIGINT, ignored)
    try:
        before = _answered(shared)
        while _answered(shared) < before + 50:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()

    assert process.returncode == 0, err
    found = json.loads(out)
    assert found["brokenOff"]
    assert found["requests"] >= 40
    assert b"interrupted" in err


def _answered(served: Served) -> int:
    sizes = served.describe("echo")["tsctl"]["batching"]["sizes"]
    return sum(int(size) * count for size, count in sizes.items())
