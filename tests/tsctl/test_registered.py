"""What `tsctl register` says after TorchServe's sentence: settings, changes, and the command to type next."""

from typing import Any

import pytest

from tests.tsctl.fake_daemon import FakeDaemon
from tsctl.client import DaemonClient
from tsctl.terminal.registered import next_command, settings_lines, url_of

ANSWER: dict[str, Any] = {
    "status": "done", "modelName": "net", "modelVersion": "1.0", "handler": "h.py", "batchSize": 8,
    "maxBatchDelay": 2.5, "batching": "auto", "replaced": False, "changed": [], "kept": [],
}  # fmt: skip
STATUS: dict[str, Any] = {
    "inferenceAddress": "http://127.0.0.1:8080", "models": [{"name": "net", "version": "1.0", "default": True}],
}  # fmt: skip
FIRST = "Batch size 8, delay at most 2.5 ms, batching auto"


def change(name: str, before: Any, after: Any) -> dict[str, Any]:
    return {"setting": name, "before": before, "after": after}


ALONE = "The function takes one request: those of a batch run in turn; hints of `list[…]` take them together"


@pytest.mark.parametrize(
    ("more", "lines"),
    [
        ({}, []),
        ({"notes": ["`h.py:predict` is served"]}, ["note: `h.py:predict` is served"]),
        ({"alone": True}, [ALONE]),
    ],
    ids=["the batching in force", "a note for the author", "a function of one request"],
)
def test_settings_are_lines(more: dict[str, Any], lines: list[str]) -> None:
    assert settings_lines(ANSWER | more) == [FIRST, *lines]


@pytest.mark.parametrize(
    ("changed", "kept", "lines"),
    [
        pytest.param([], [], ["Changed: no setting"], id="nothing"),
        pytest.param(
            [change("batchSize", 8, 1), change("maxBatchDelay", 20.0, 5.0)],
            [], ["Changed: batch size 8 → 1, maximum delay 20 → 5 ms"], id="numbers with their unit"),
        pytest.param(
            [change("clientTimeoutInMills", 0.0, 1500.0)], [],
            ["Changed: client timeout 0 → 1.5 s"], id="in the unit of the option"),
        pytest.param(
            [change("deviceIds", None, [0, 1]), change("retry", True, None)],
            [], ["Changed: GPUs none → 0,1, retry on → none"], id="lists, switches and nothing"),
        pytest.param(
            [change("ofTomorrow", 1, 2)], ["ofTomorrow", "batchSize"],
            ["Changed: ofTomorrow 1 → 2", "Kept: ofTomorrow, batch size (`--reset` begins anew)"],
            id="a setting that only the daemon knows"),
    ],
)  # fmt: skip
def test_a_replacement_says_what_changed_and_what_was_kept(
    changed: list[dict[str, Any]], kept: list[str], lines: list[str]
) -> None:
    assert settings_lines(ANSWER | {"replaced": True, "changed": changed, "kept": kept}) == [FIRST, *lines]


@pytest.mark.parametrize(
    ("more", "command"),
    [
        pytest.param({}, "bench net FILE", id="batches are measured"),
        pytest.param({"batchSize": 1}, "set net --batch-size 8", id="and where there are none, given"),
        pytest.param({"batchSize": 1, "mostRows": 1}, "bench net FILE", id="unless the model's file takes one"),
        pytest.param({"batchSize": 1, "alone": True}, "bench net FILE", id="or the function"),
        pytest.param({"workers": 0, "onDemand": False}, "scale net 1", id="a model without workers gets one first"),
        pytest.param({"workers": 0, "onDemand": True}, "bench net FILE", id="unless a request brings it"),
    ],
)
def test_the_next_command(more: dict[str, Any], command: str) -> None:
    assert next_command(ANSWER | more) == f"tsctl {command}"


@pytest.mark.parametrize(
    ("status", "url"),
    [
        pytest.param({}, "http://127.0.0.1:8080/predictions/net", id="the default version"),
        pytest.param(
            {"models": [{"name": "net", "version": "2.0", "default": True}]},
            "http://127.0.0.1:8080/predictions/net/1.0", id="not the default version"),
        pytest.param(
            {"inferenceAddress": None}, "http://localhost/predictions/net, on the control socket", id="no port"),
    ],
)  # fmt: skip
def test_the_url_is_that_of_the_version(daemon: FakeDaemon, status: dict[str, Any], url: str) -> None:
    daemon.answer("GET /tsctl/status", STATUS | status)

    assert url_of(DaemonClient(daemon.path), "net", "1.0") == url
