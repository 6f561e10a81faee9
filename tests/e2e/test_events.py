"""Whatever goes wrong is an event and a line of the daemon's log within two seconds."""

import json
import os
import resource
import signal
import time
from typing import Any

import pytest

from tests.e2e.served import Served, eventually

SOON = 2.0  # seconds


def events(served: Served, *options: str) -> list[dict[str, Any]]:
    """What `tsctl events` prints."""
    return [json.loads(line) for line in served.tsctl("events", "--json", *options).splitlines()]


def soon(served: Served, kind: str, since: float, **expected: Any) -> dict[str, Any]:
    """Wait for an event of this kind with these values; it must come soon, and be a line of the log."""
    while True:
        answer = served.command("GET", "/tsctl/events").json["events"]
        for event in answer:
            if event["kind"] == kind and expected.items() <= event.items():
                assert event["time"] - since < SOON
                assert event["text"] in served.log()
                assert event in events(served)
                return dict(event)
        assert time.time() - since < 60, answer
        time.sleep(0.02)


@pytest.fixture
def echo(served: Served) -> Served:
    served.register("echo", "--workers", "1", "--batch-size", "1")
    return served


@pytest.mark.thin
def test_a_killed_worker_is_told_with_its_pid_and_how_it_ended(echo: Served) -> None:
    (pid,), now = echo.pids("echo"), time.time()

    os.kill(pid, signal.SIGKILL)

    event = soon(echo, "worker-exited", now, model="echo", version="1.0", worker=pid, level="error")
    assert event["text"] == (
        f"worker {pid} ended: killed by SIGKILL (perhaps by the kernel, out of memory); it had no requests"
    )
    described = echo.describe("echo")["tsctl"]["events"]
    assert [each["kind"] for each in described] == ["registered", "model-ready", "worker-exited"]


@pytest.mark.thin
def test_a_full_disk_is_told_while_requests_are_answered_and_what_was_told_meanwhile_is_kept(echo: Served) -> None:
    before, now = resource.prlimit(echo.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY)), time.time()

    assert echo.ask("/predictions/echo", b"x").status == 200  # its line of the access log is lost
    refused = echo.command("PATCH", "/models/echo?batch_size=3")
    assert refused.status == 500
    assert "it could not be saved and will be lost on restart: cannot write" in refused.json["message"]

    def kinds() -> list[str]:
        return [event["kind"] for event in echo.command("GET", "/tsctl/events").json["events"]]

    def lost() -> list[dict[str, Any]]:
        return [event for event in events(echo) if event["kind"] == "log-lost"]

    eventually(
        lambda: any("access.log" in event["text"] for event in lost()), "the lost line of the access log is told"
    )
    assert "not-remembered" in kinds()
    assert all(event["time"] - now < SOON for event in lost())
    assert echo.ask("/predictions/echo", bytes(100_000), content_type="application/octet-stream").status == 200
    archive = echo.command("POST", f"/models?url={echo.pack('echo', name='other')}")
    assert archive.status == 400 and "cannot be unpacked" in archive.json["message"]

    resource.prlimit(echo.pid, resource.RLIMIT_FSIZE, before)
    echo.tsctl("scale", "echo", "2")
    assert echo.command("PATCH", "/models/echo?max_batch_delay=7").status == 200
    assert "scaled to 2 workers" in echo.log() and "could not be written here)" in echo.log()
    echo.stop()
    echo.start()
    assert {"log-lost", "not-remembered", "scaled"} <= set(kinds())
    described = echo.describe("echo")
    assert (described["batchSize"], described["maxBatchDelay"]) == (3, 7), "the next that could be written brought both"
    assert [model["name"] for model in echo.status["models"]] == ["echo"]


def test_events_outlive_a_killed_daemon_and_an_upgrade_and_their_numbers_rise(echo: Served) -> None:
    old = echo.pid
    echo.tsctl("upgrade")
    eventually(lambda: not os.path.exists(f"/proc/{old}"), "the old daemon ends")
    echo.kill()

    offline = events(echo, "--state-dir", str(echo.folder / "state"))
    echo.start()

    found = events(echo)
    assert found[: len(offline)] == offline
    numbers = [event["sequence"] for event in found]
    assert numbers == sorted(set(numbers))
    kinds = [event["kind"] for event in found if not event["model"] and event["kind"] != "loop-stalled"]
    assert (kinds[:2], kinds[4:]) == (["started", "upgrade-started"], ["daemon-lost", "started"])
    assert sorted(kinds[2:4]) == ["started", "upgraded"]
