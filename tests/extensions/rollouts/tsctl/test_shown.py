"""A rollout where versions are shown: in `tsctl ls`, `describe` and `top`, and never with characters of a client."""

from typing import Any

import pytest

from tests.extensions.rollouts.tsctl.test_commands import ROLLOUT
from tests.tsctl.conftest import Invoke
from tests.tsctl.documents import DESCRIBED, described, model
from tests.tsctl.fake_daemon import FakeDaemon
from tests.tsctl.top.test_screens import busy, drawn, past_of
from tsctl.top.columns import ScreenSize
from tsctl.top.detail import detail

SHARED = {"share": 0.2, "shadow": False}


def test_ls_shows_the_step_beside_the_share(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("GET /tsctl/status", {"models": [model("net", "2.0") | SHARED | {"rollout": "step 2 of 4"}]})

    assert "20 %, step 2 of 4" in invoke("ls").stdout


def test_describe_shows_the_version_its_state_and_its_share(capsys: pytest.CaptureFixture[str]) -> None:
    rollout = {"version": "2.0", "state": "stepping", "share": 20.0}

    lines = described(capsys, DESCRIBED | {"tsctl": DESCRIBED["tsctl"] | {"rollout": rollout}})

    assert "rollout of 2.0: stepping, at 20 %" in lines


@pytest.mark.parametrize(
    ("state", "style"), [pytest.param("stepping", "", id="going on"), pytest.param("aborted", "red", id="taken back")]
)
def test_a_versions_own_screen_has_the_evidence_below_the_shares(state: str, style: str) -> None:
    facts: dict[str, Any] = SHARED | {"evidence": ROLLOUT | {"state": state}, "rollout": "step 2 of 3"}
    before, after = busy(**facts)
    past = past_of(busy(share=0.8, shadow=False), (before | {"version": "2.0"}, after | {"version": "2.0"}))

    screen = detail(past, ("m", "2.0"), [], [], ScreenSize(100, 26))

    lines = drawn(screen)
    at = next(index for index, line in enumerate(lines) if line.startswith("rollout: "))
    assert lines[at - 1].startswith("> 2.0")
    assert lines[at : at + 3] == [
        "rollout: stepping, step 2 of 3: 1 [10] 100 %" if state == "stepping" else "rollout: aborted: 1 [10] 100 %",
        "  errors>1%    good  2 of 1500",
        "  p99>1.5x     open  waits for more answers of the versions before",
    ]
    assert screen[at][0].style == style
    assert lines[1].startswith("20% of the requests · rollout: step 2 of 3 · ")
