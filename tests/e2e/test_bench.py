"""`tsctl bench` against a real daemon."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.certificate import make_certificate, needs_openssl
from tests.e2e.served import PATIENCE, TSCTL, Served


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "body").write_text("x" * 100)
    return tmp_path / "body"


def bench(served: Served, *arguments: str | Path) -> Any:
    return json.loads(served.tsctl("bench", *map(str, arguments), "--json"))


def test_a_closed_loop_sends_as_many_requests_as_asked(shared: Served, text: Path) -> None:
    found = bench(shared, "echo", text, "-n", "200", "-c", "4")

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


def _answered(served: Served) -> float:
    lines = served.ask("/metrics", method="GET").body.decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("tsctl_request_latency_seconds_count"))


@needs_openssl
def test_https_with_a_token_needs_no_word_from_the_user(idle: Served, tmp_path: Path, text: Path) -> None:
    token = tmp_path / "token"
    token.write_text("a-token-for-predictions")
    token.chmod(0o600)
    certificate, key = make_certificate(tmp_path)
    files = ("--certificate-file", str(certificate), "--private-key-file", str(key))
    idle.start(*files, "--inference-token-file", str(token))
    idle.register("echo")

    found = bench(idle, "echo", text, "-n", "40")

    assert found["statuses"] == {"200": 40}
