"""What `tsctl register` says after TorchServe's sentence: settings, changes, and the command to type next."""

import json
from typing import Any

from tests.kit.said import said_in
from tests.tsctl.fake_daemon import FakeDaemon
from tsctl.client import DaemonClient
from tsctl.terminal.registered import next_command, settings_lines, url_of

ANSWER: dict[str, Any] = {
    "status": "done", "modelName": "net", "modelVersion": "1.0", "handler": "h.py", "batchSize": 8,
    "maxBatchDelay": 2.5, "batching": "auto", "replaced": False, "changed": [], "kept": [],
}  # fmt: skip
STATUS = {"models": [{"name": "net", "version": "1.0", "default": True}]}
FIRST = "Batch size 8, delay at most 2.5 ms, batching auto"


ALONE = "The function takes one request: those of a batch run in turn; hints of `list[…]` take them together"


def test_settings_are_followed_by_what_the_author_should_know() -> None:
    more = {"alone": True, "notes": ["`h.py:predict` is served"]}

    assert settings_lines(ANSWER | more) == [FIRST, ALONE, "note: `h.py:predict` is served"]


def test_requests_that_a_worker_runs_on_their_own_have_no_delay() -> None:
    first, *_ = settings_lines(ANSWER | {"mode": "continuous", "places": 8})

    assert first == "Batching continuous, at most 8 requests on their own in a worker"


@said_in("replaced.txt")
def test_a_replacement_says_what_changed_and_what_was_kept(given: str) -> str:
    told = json.loads(given)
    changed = [{"setting": name, "before": before, "after": after} for name, before, after in told["changed"]]
    return "\n".join(settings_lines(ANSWER | {"replaced": True, "changed": changed, "kept": told["kept"]}))


@said_in("next_commands.txt")
def test_the_next_command(given: str) -> str:
    return next_command(ANSWER | json.loads(given))


def test_without_a_port_the_url_is_on_the_control_socket(daemon: FakeDaemon) -> None:
    daemon.answer("GET /tsctl/status", STATUS | {"inferenceAddress": None})

    assert url_of(DaemonClient(daemon.path), "net", "1.0") == "http://localhost/predictions/net, on the control socket"
