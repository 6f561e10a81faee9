"""A rollout where versions are shown: in `tsctl ls` and `describe`, and never with characters of a client."""

import pytest

from tests.tsctl.conftest import Invoke
from tests.tsctl.documents import DESCRIBED, described, model
from tests.tsctl.fake_daemon import FakeDaemon

SHARED = {"share": 0.2, "shadow": False}


def test_ls_shows_the_step_beside_the_share(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("GET /tsctl/status", {"models": [model("net", "2.0") | SHARED | {"rollout": "step 2 of 4"}]})

    assert "20 %, step 2 of 4" in invoke("ls").stdout


def test_describe_shows_the_version_its_state_and_its_share(capsys: pytest.CaptureFixture[str]) -> None:
    rollout = {"version": "2.0", "state": "stepping", "share": 20.0}

    lines = described(capsys, DESCRIBED | {"tsctl": DESCRIBED["tsctl"] | {"rollout": rollout}})

    assert "rollout of 2.0: stepping, at 20 %" in lines
