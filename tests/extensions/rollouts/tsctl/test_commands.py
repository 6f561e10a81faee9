"""`tsctl rollout`, `promote` and `abort`."""

import json
from typing import Any

import pytest

from tests.tsctl.conftest import Invoke
from tests.tsctl.fake_daemon import FakeDaemon
from tsctl.extensions.rollouts.evidence import evidence_lines, rollout_heading

ROLLOUT = {
    "version": "2.0", "state": "stepping", "share": 10.0, "steps": [1.0, 10.0, 100.0], "step": 1, "every": 120.0,
    "abortIf": ["errors>1%", "p99>1.5x"], "reason": "errors>1%: 0 of 920 failed", "waitsFor": "not shown yet: p99>1.5x",
    "findings": [
        {"condition": "errors>1%", "verdict": "good", "requests": 1500, "bad": 2, "needed": 0},
        {"condition": "p99>1.5x", "verdict": "open", "requests": None, "bad": None, "needed": None},
    ],
}  # fmt: skip


def test_a_rollout_is_started_with_its_options(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("POST /models/net/rollout", {"status": "begins"})

    result = invoke(
        "rollout", "net/2.0", "--steps", "10,100", "--every", "30s", "--abort-if", "errors>1%", "--abort-if", "p99>2x",
        "--compare", "--allow-effects",
    )  # fmt: skip

    (request,) = daemon.requests
    assert request.query == {
        "version": "2.0", "steps": "10,100", "every": "30s", "abort_if": "errors>1%,p99>2x", "compare": "true",
        "allow_effects": "true",
    }  # fmt: skip
    assert result.stdout == "begins\n"


def test_the_last_rollout_is_shown(invoke: Invoke, daemon: FakeDaemon) -> None:
    document = {"modelName": "net", "rollout": ROLLOUT}
    daemon.answer("GET /models/net/rollout", document)

    assert invoke("rollout", "net").stdout.splitlines() == [
        "net/2.0  stepping, step 2 of 3: 1 [10] 100 %",
        "  errors>1%    good  2 of 1500",
        "  p99>1.5x     open  waits for more answers of the versions before",
        "  errors>1%: 0 of 920 failed",
    ]
    assert json.loads(invoke("rollout", "net", "--json").stdout) == document


def test_a_model_without_a_rollout(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("GET /models/net/rollout", {"modelName": "net", "rollout": None})

    assert invoke("rollout", "net").stdout == "`net` has had no rollout\n"


@pytest.mark.parametrize("verb", ["promote", "abort"])
def test_a_rollout_is_ended(invoke: Invoke, daemon: FakeDaemon, verb: str) -> None:
    daemon.answer(f"POST /models/net/rollout/{verb}", {"status": "ended"})

    assert invoke(verb, "net").stdout == "ended\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["rollout", "net", "--steps", "1"], "which version is to take over? `tsctl rollout net/VERSION`"),
        (["promote", "net/2.0"], "`net/2.0` names a version"),
        (["abort", "net/2.0"], "`net/2.0` names a version"),
    ],
)
def test_wrong_usage(invoke: Invoke, arguments: list[str], said: str) -> None:
    result = invoke(*arguments)

    assert (result.exit_code, said in result.stderr) == (2, True)


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
