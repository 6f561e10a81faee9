"""`tsctl rollout`, `promote` and `abort`."""

import json

from tests.kit.said import said_in
from tsctl.extensions.rollouts.evidence import evidence_lines, rollout_heading

ROLLOUT = {
    "version": "2.0", "state": "stepping", "share": 10.0, "steps": [1.0, 10.0, 100.0], "step": 1, "every": 120.0,
    "abortIf": ["errors>1%", "p99>1.5x"], "reason": "errors>1%: 0 of 920 failed", "waitsFor": "not shown yet: p99>1.5x",
    "findings": [
        {"condition": "errors>1%", "verdict": "good", "requests": 1500, "bad": 2, "needed": 0},
        {"condition": "p99>1.5x", "verdict": "open", "requests": None, "bad": None, "needed": None},
    ],
}  # fmt: skip


@said_in("waits_for.txt")
def test_a_step_says_what_it_waits_for(given: str) -> str:
    return "\n".join(evidence_lines(ROLLOUT | {"findings": [], "reason": None} | json.loads(given)))


def test_a_rollout_that_is_over_has_no_step() -> None:
    assert rollout_heading(ROLLOUT | {"state": "promoted", "share": 100.0}) == "promoted: 1 10 [100] %"
