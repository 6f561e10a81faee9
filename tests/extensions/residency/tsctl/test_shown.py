"""Versions that come and go, as `tsctl describe` shows them."""

import pytest

from tests.tsctl.documents import DESCRIBED
from tsctl.commands.describe import show

ABSENT = {
    "state": "unloaded", "since": 1940.0, "why": "idle for 1m", "reason": "idle", "onDemand": True, "held": False,
    "pinned": False, "lastUsed": 1880.0, "unloadsAt": None, "keepAlive": 60.0, "loads": {}, "unloads": {"idle": 1},
    "loadSeconds": 0.5, "memory": {"host": 72 * 2**20}, "template": 0,
}  # fmt: skip


def test_describe_has_since_when_and_why_what_it_takes_and_the_loads(capsys: pytest.CaptureFixture[str]) -> None:
    show(DESCRIBED | {"tsctl": DESCRIBED["tsctl"] | {"residence": ABSENT}})

    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    at = next(index for index, line in enumerate(lines) if line.startswith("memory "))
    assert "idle for 1m" in lines[at]
    assert lines[at + 1 : at + 3] == [
        "takes 72.0 MiB on host when loaded", "the last load took 0.50 s, loaded never, unloaded once",
    ]  # fmt: skip
