"""The logs of a real daemon: their lines in both formats, merged, followed through a rotation, and on a full disk."""

import json
import re
from typing import Any

import pytest

from tests.e2e.served import Served, eventually

STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d"
FILES = ("daemon.log", "access.log", "speaks@1.0.log")


def speak(served: Served, body: bytes) -> int:
    """Let a worker print a body; return its pid."""
    answer = served.ask("/predictions/speaks", body, content_type="application/octet-stream", x_request_id="asked")
    assert answer.status == 200
    eventually(lambda: "asked" in served.log("access.log"), "the access log has the request")
    return int(answer.body)


def entries(served: Served, *options: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in served.tsctl("logs", "--json", *options).splitlines()]


@pytest.mark.thin
def test_every_line_of_every_log_begins_with_its_time_by_which_they_are_merged(served: Served) -> None:
    served.register("speaks", "--workers", "1")

    pid = speak(served, b"caf\xe9")

    for name in FILES:
        assert all(re.match(rf"{STAMP} \S", line) for line in served.log(name).splitlines()), name
    texts = {line.partition(" ")[2] for line in served.log("speaks@1.0.log").splitlines()}
    assert {f"{pid} stdout caf\\xe9", f"{pid} stderr and b'caf\\xe9'"} <= texts

    served.tsctl("unregister", "speaks")
    found = [each.get("request") or each["text"] for each in entries(served)]
    of_it = ("speaks/1.0: registered from speaks.mar", "asked", "caf\\xe9", "speaks/1.0: unregistered")
    first, *between, last = (each for each in found if each in of_it)
    # A worker's line has the time at which the daemon read it, which may be after the answer.
    assert (first, *sorted(between), last) == of_it, found
    assert entries(served, "--since", "1h", "-n", "1")[0]["time"] >= entries(served, "-n", "9")[0]["time"]
    assert {each["log"] for each in entries(served, "--daemon", "speaks/1.0")} == {"daemon", "model"}


def test_every_line_of_every_log_is_json_where_asked_for(idle: Served) -> None:
    idle.start("--log-format", "json")
    idle.register("speaks", "--workers", "1")

    pid = speak(idle, "caf\u00e9 \u2192".encode())

    daemon, access, model = ([json.loads(line) for line in idle.log(name).splitlines()] for name in FILES)
    assert {"time", "level", "log", "text"} <= set.intersection(*(set(each) for each in daemon))
    assert any(each.get("kind") == "registered" and each["model"] == "speaks" for each in daemon)
    (asked,) = (each for each in access if each["request"] == "asked")
    assert (asked["method"], asked["path"], asked["status"], asked["requestBytes"]) == (
        "POST", "/predictions/speaks", 200, 9,
    )  # fmt: skip
    printed = {(each["model"], each["version"], each["pid"], each["stream"], each["text"]) for each in model}
    assert ("speaks", "1.0", pid, "stdout", "caf\u00e9 \u2192") in printed
    shown = idle.tsctl("logs", "speaks")
    assert re.search(rf"^{STAMP} {pid} stdout caf\u00e9 \u2192$", shown, re.MULTILINE), "as text, for people"
