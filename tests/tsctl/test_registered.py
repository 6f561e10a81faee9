"""What `tsctl register` says after TorchServe's sentence: settings, changes, and the command to type next."""

import json
from typing import Any

import pytest

from tests.kit.said import said_in
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


@said_in("replaced.txt")
def test_a_replacement_says_what_changed_and_what_was_kept(given: str) -> str:
    told = json.loads(given)
    changed = [{"setting": name, "before": before, "after": after} for name, before, after in told["changed"]]
    return "\n".join(settings_lines(ANSWER | {"replaced": True, "changed": changed, "kept": told["kept"]}))


@said_in("next_commands.txt")
def test_the_next_command(given: str) -> str:
    return next_command(ANSWER | json.loads(given))


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
