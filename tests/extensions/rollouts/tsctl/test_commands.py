"""`tsctl rollout`, `promote` and `abort`."""

from typing import Any

import pytest

from tsctl.extensions.rollouts.evidence import evidence_lines, rollout_heading

ROLLOUT = {
    "version": "2.0", "state": "stepping", "share": 10.0, "steps": [1.0, 10.0, 100.0], "step": 1, "every": 120.0,
    "abortIf": ["errors>1%", "p99>1.5x"], "reason": "errors>1%: 0 of 920 failed", "waitsFor": "not shown yet: p99>1.5x",
    "findings": [
        {"condition": "errors>1%", "verdict": "good", "requests": 1500, "bad": 2, "needed": 0},
        {"condition": "p99>1.5x", "verdict": "open", "requests": None, "bad": None, "needed": None},
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        pytest.param({"waitsFor": "55 s until the step is over"}, ["55 s until the step is over"], id="its time"),
        pytest.param({"waitsFor": "not shown yet: errors>1%"}, [], id="what each condition says already"),
        pytest.param(
            {"waitsFor": None, "reason": "errors>1%: 9 of 30 failed"}, ["errors>1%: 9 of 30 failed"], id="its end"
        ),
    ],
)
def test_a_step_says_what_it_waits_for(changes: dict[str, Any], lines: list[str]) -> None:
    assert evidence_lines(ROLLOUT | {"findings": [], "reason": None} | changes) == lines


def test_a_rollout_that_is_over_has_no_step() -> None:
    assert rollout_heading(ROLLOUT | {"state": "promoted", "share": 100.0}) == "promoted: 1 10 [100] %"
