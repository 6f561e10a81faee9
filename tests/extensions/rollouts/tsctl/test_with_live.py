"""A rollout in `tsctl top`."""

from typing import Any

import pytest

from tests.extensions.live.tsctl.test_screens import busy, drawn, past_of
from tests.extensions.rollouts.tsctl.test_commands import ROLLOUT
from tests.extensions.rollouts.tsctl.test_shown import SHARED
from tsctl.extensions.live.columns import ScreenSize
from tsctl.extensions.live.detail import detail


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
