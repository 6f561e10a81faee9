"""`tsctl set` tells the daemon what is to change, and people what has changed."""

import json
from typing import Any

import pytest

from tests.tsctl.conftest import Invoke
from tests.tsctl.fake_daemon import FakeDaemon


def changed(*changes: tuple[str, Any, Any]) -> dict[str, Any]:
    """Make the answer to `PATCH /models/net`."""
    told = [{"name": name, "from": before, "to": now} for name, before, now in changes]
    return {"status": "changed", "modelName": "net", "modelVersion": "1.0", "changes": told}


def test_set_says_from_what_to_what(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer(
        "PATCH /models/net",
        changed(
            ("batchSize", 1, 8), ("maxBatchDelay", 100.0, 2.5), ("batching", "auto", "fixed"),
            ("responseTimeout", 120.0, 120.0), ("quarantine", False, True), ("queueTimeout", None, 3.0),
            ("clientTimeoutInMills", 0.0, 2500.0), ("jobQueueBytes", "256 MiB", "1.5 GiB"), ("colour", "red", "blue"),
        ),
    )  # fmt: skip

    result = invoke("set", "net", "--batch-size", "8")

    assert result.stdout.splitlines() == [
        "Set the batch size of `net` 1.0 from 1 to 8",
        "Set the maximum delay of `net` 1.0 from 100 to 2.5 ms",
        "Set the batching of `net` 1.0 from auto to fixed",
        "The response timeout of `net` 1.0 stays 120 s",
        "Set the quarantine of `net` 1.0 from off to on",
        "Set the queue timeout of `net` 1.0 from none to 3 s",
        "Set the client timeout of `net` 1.0 from 0 to 2.5 s",
        "Set the queue size in bytes of `net` 1.0 from 256 MiB to 1.5 GiB",
        "Set the colour of `net` 1.0 from red to blue",
    ]


def test_set_as_json_is_the_daemons_document(invoke: Invoke, daemon: FakeDaemon) -> None:
    document = changed(("batchSize", 1, 8))
    daemon.answer("PATCH /models/net", document)

    result = invoke("set", "net", "--batch-size", "8", "--json")

    assert json.loads(result.stdout) == document


def test_set_passes_every_option_on(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("PATCH /models/net/1.0", changed(("batchSize", 1, 8)))

    invoke(
        *("set", "net/1.0", "--batch-size", "8", "--max-delay", "2.5", "--batching", "greedy", "--queue-jobs", "9"),
        *("--response-timeout", "5", "--startup-timeout", "6", "--no-quarantine"),
    )

    assert daemon.requests[0].query == {
        "batch_size": "8",
        "max_batch_delay": "2.5",
        "batching": "greedy",
        "response_timeout": "5",
        "startup_timeout": "6",
        "job_queue_size": "9",
        "quarantine": "false",
    }


def test_set_without_an_option_is_wrong_usage(invoke: Invoke, daemon: FakeDaemon) -> None:
    result = invoke("set", "net")

    assert result.exit_code == 2
    assert "no change requested: add at least one option, such as `--batch-size 8`" in result.stderr
    assert daemon.requests == []


@pytest.mark.parametrize("option", ["--batch-size=0", "--max-delay=-1", "--response-timeout=0", "--queue-jobs=0"])
def test_set_refuses_what_cannot_be(invoke: Invoke, option: str) -> None:
    assert invoke("set", "net", option).exit_code == 2
