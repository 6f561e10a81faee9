"""Permitted outcomes of a request are accepted, and all others are found."""

import json
from pathlib import Path

import pytest

from tests.kit.said import said_in
from tests.lab.harness.ledger import Ledger
from tests.lab.harness.verdict import Asked, Broken, Kind, Rules, Told, judge, judge_runs

RETRY, ONCE = Rules(), Rules(retry=False)
RULES = {
    "RETRY": RETRY, "ONCE": ONCE, "NARROW": Rules(narrow=True), "PIECES": Rules(pieces=True),
    "TIMED": Rules(timeout=100),
}  # fmt: skip
KILLED = {66, 67}


def test_a_request_with_a_deadline_may_be_told_that_it_is_over() -> None:
    timed = Asked(7, RETRY, b"words", generation=3, deadline=30)

    assert judge(timed, told(504, b"too late"), KILLED)[0] is Kind.EXPIRED


def test_a_request_that_is_to_end_its_worker_may_be_told_so_and_no_other_may() -> None:
    answer = told(500, b"The worker died while it ran this request: it exited with code 7. (Request chaos-7)")

    assert judge(Asked(7, ONCE, b"words", generation=3, crash=True), answer, KILLED)[0] is Kind.CRASHED
    with pytest.raises(Broken, match="500"):
        judge(Asked(7, ONCE, b"words", generation=3), answer, KILLED)


def test_a_request_that_reached_its_handler_with_other_bytes_is_found(tmp_path: Path) -> None:
    ledger = Ledger()
    ledger.generations["steady"] = 3
    request = ledger.make("steady", RETRY, b"words")
    ledger.ended("steady", request, Kind.RIGHT, 42)
    journal = tmp_path / "journal"
    journal.write_text(f"{request.number} torn\n{request.number} 42\n")

    ledger.check_runs(journal)

    assert ledger.broken == [f"{request.id} reached its handler with other bytes than it was sent with"]


def asked(rules: Rules = RETRY) -> Asked:
    return Asked(7, rules, b"words", generation=3)


ROUTES = ({3}, {3, 4}, {4})  # the second while it changed


@pytest.mark.parametrize(
    ("version", "since", "answered", "good"),
    [
        pytest.param(0, 2, 4, True, id="by the route"),
        pytest.param(0, 2, 3, False, id="by a route that was replaced before"),
        pytest.param(0, 0, 4, True, id="by a later route, after having waited"),
        pytest.param(3, 2, 3, True, id="by the version that it names"),
        pytest.param(3, 0, 4, False, id="by another than that"),
    ],
)
def test_a_request_is_answered_by_a_version_of_its_time(version: int, since: int, answered: int, good: bool) -> None:
    routed = Asked(7, RETRY, b"words", 3, version=version, routes=tuple(map(frozenset, ROUTES)), since=since)
    answer = told(body=b"7 %d 42 sdrow" % answered)

    if good:
        assert judge(routed, answer, KILLED)[0] is Kind.RIGHT
    else:
        with pytest.raises(Broken, match="was answered by version"):
            judge(routed, answer, KILLED)


def told(status: int = 200, body: bytes = b"7 3 42 sdrow", *, whole: bool = True, **headers: str) -> Told:
    return Told(status, {"x-request-id": "chaos-7"} | {k.replace("_", "-"): v for k, v in headers.items()}, body, whole)


@said_in("answers.txt")
def test_what_is_promised_may_happen_and_nothing_else(given: str) -> str:
    answer = json.loads(given)
    rules, body = RULES[answer.pop("rules")], answer.pop("body", "7 3 42 sdrow").encode()
    try:
        return judge(asked(rules), told(body=body, **answer), KILLED)[0].name
    except Broken as error:
        return f"broken: {error}"


@said_in("runs.txt")
def test_runs_that_are_promised_and_others(given: str) -> str:
    told = json.loads(given)
    try:
        judge_runs(Kind[told["kind"]], RULES[told["rules"]], told["pid"], told["runs"], KILLED)
    except Broken as error:
        return f"broken: {error}"
    return "promised"
