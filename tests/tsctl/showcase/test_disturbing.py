"""The worker that the demo kills."""

from pathlib import Path

import pytest

from tsctl.client import DaemonClient
from tsctl.showcase.disturbing import ready_worker


@pytest.mark.parametrize(
    ("workers", "pid"),
    [
        pytest.param([], None, id="none"),
        pytest.param([{"pid": 7, "status": "UNLOADING"}], None, id="none that is ready"),
        pytest.param([{"pid": 7, "status": "UNLOADING"}, {"pid": 8, "status": "READY"}], 8, id="the one that is ready"),
    ],
)
def test_the_worker_is_the_one_that_is_ready(
    workers: list[dict[str, object]], pid: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = DaemonClient(Path("nowhere"))
    monkeypatch.setattr(client, "json", lambda method, target: [{"workers": workers}])

    assert ready_worker(client) == pid
