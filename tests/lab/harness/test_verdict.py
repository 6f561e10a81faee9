"""Permitted outcomes of a request are accepted, and all others are found."""

from pathlib import Path

import pytest

from tests.lab.harness.ledger import Ledger
from tests.lab.harness.verdict import Asked, Broken, Kind, Rules, Told, judge, judge_runs

RETRY, ONCE = Rules(), Rules(retry=False)
NARROW, PIECES, TIMED = Rules(narrow=True), Rules(pieces=True), Rules(timeout=100)
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


@pytest.mark.parametrize(
    ("rules", "answer", "kind"),
    [
        pytest.param(RETRY, told(), Kind.RIGHT, id="right"),
        pytest.param(RETRY, told(body=b"7 4 42 sdrow"), Kind.RIGHT, id="by an archive not yet acknowledged"),
        pytest.param(RETRY, told(body=b"7 2 42 sdrow", connection="close"), Kind.RIGHT, id="the old daemon's last"),
        pytest.param(ONCE, told(507, b"The worker died while it ran"), Kind.DIED, id="died, and not to be run again"),
        pytest.param(RETRY, told(507, b"The worker died again while"), Kind.DIED_AGAIN, id="died twice"),
        pytest.param(NARROW, told(503, b"is full: 2", retry_after="1"), Kind.QUEUE_FULL, id="the queue is full"),
        pytest.param(PIECES, told(body=b"7 3 66 sd", whole=False), Kind.CUT_OFF, id="cut off with its worker"),
        pytest.param(TIMED, told(504, b"too late"), Kind.EXPIRED, id="its model allows it no more time"),
    ],
)
def test_what_is_promised_may_happen(rules: Rules, answer: Told, kind: Kind) -> None:
    assert judge(asked(rules), answer, KILLED)[0] is kind


@pytest.mark.parametrize(
    ("rules", "answer", "sentence"),
    [
        pytest.param(RETRY, Told(200, {"x-request-id": "chaos-6"}), "owed to chaos-6", id="another's answer"),
        pytest.param(RETRY, told(body=b"7 3 42 sdxow"), "answered wrong", id="another's words"),
        pytest.param(RETRY, told(body=b"oops"), "no account", id="no account"),
        pytest.param(RETRY, told(body=b"7 2 42 sdrow"), "archive 2", id="by the archive before"),
        pytest.param(RETRY, told(body=b"7 3 66 sd", whole=False), "in the middle", id="cut off, and not in pieces"),
        pytest.param(PIECES, told(body=b"7 3 42 sd", whole=False), "42 was not killed", id="cut off by nobody"),
        pytest.param(RETRY, told(507, b"The worker died while"), "507", id="not run again"),
        pytest.param(ONCE, told(507, b"The worker died again while"), "507", id="run again"),
        pytest.param(RETRY, told(503, b"is full", retry_after="1"), "503", id="a queue that cannot be full"),
        pytest.param(NARROW, told(503, b"is full"), "503", id="no Retry-After"),
        pytest.param(RETRY, told(504, b"too late"), "504", id="too late, and it had any time"),
        pytest.param(RETRY, told(500, b"The worker", whole=False), "ended in the middle", id="half an error"),
    ],
)
def test_what_is_not_promised_is_found(rules: Rules, answer: Told, sentence: str) -> None:
    with pytest.raises(Broken, match=sentence):
        judge(asked(rules), answer, KILLED)


@pytest.mark.parametrize(
    ("kind", "rules", "pid", "runs"),
    [
        pytest.param(Kind.RIGHT, RETRY, 42, [42], id="once"),
        pytest.param(Kind.RIGHT, RETRY, 42, [66, 42], id="again, since the first was killed"),
        pytest.param(Kind.DIED_AGAIN, RETRY, 0, [66, 67], id="by two that were killed"),
        pytest.param(Kind.DIED_AGAIN, RETRY, 0, [66], id="one was killed before it could say so"),
        pytest.param(Kind.QUEUE_FULL, NARROW, 0, [], id="not at all"),
        pytest.param(Kind.LEFT, RETRY, 0, [], id="nobody waits for it"),
    ],
)
def test_runs_that_are_promised(kind: Kind, rules: Rules, pid: int, runs: list[int]) -> None:
    judge_runs(kind, rules, pid, runs, KILLED)


@pytest.mark.parametrize(
    ("kind", "rules", "pid", "runs"),
    [
        pytest.param(Kind.RIGHT, RETRY, 42, [], id="by nobody"),
        pytest.param(Kind.RIGHT, RETRY, 42, [42, 43], id="by another afterwards"),
        pytest.param(Kind.RIGHT, RETRY, 42, [41, 42], id="again, and the first lives"),
        pytest.param(Kind.RIGHT, RETRY, 42, [66, 67, 42], id="three times"),
        pytest.param(Kind.RIGHT, ONCE, 42, [66, 42], id="twice without retry"),
        pytest.param(Kind.DIED, ONCE, 0, [42], id="its worker lives"),
        pytest.param(Kind.QUEUE_FULL, NARROW, 0, [42], id="refused, and run"),
        pytest.param(Kind.HALF_SENT, RETRY, 0, [42], id="incomplete, and run"),
    ],
)
def test_runs_that_are_not_promised(kind: Kind, rules: Rules, pid: int, runs: list[int]) -> None:
    with pytest.raises(Broken):
        judge_runs(kind, rules, pid, runs, KILLED)
