"""The parts of the comparison that run no server: requests as bytes, scrubbing, Java, the page."""

import pytest

from tests.environments import Missing
from tests.lab.conformance import report
from tests.lab.conformance.case import Step, ask, ask_json, manage
from tests.lab.conformance.cases import GROUPS
from tests.lab.conformance.compare import Judgement, Verdict
from tests.lab.conformance.environment import check_java
from tests.lab.conformance.pending import PENDING
from tests.lab.conformance.purpose import PURPOSES
from tests.lab.conformance.scrub import scrub
from tests.lab.conformance.talk import Answer


@pytest.mark.parametrize(
    ("step", "data"),
    [
        pytest.param(ask("/a", method="GET"), b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n", id="GET has no length"),
        pytest.param(
            ask("/a", "é", kind="text/plain"),
            "POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\né".encode(),
            id="a body brings its length",
        ),
        pytest.param(
            manage("DELETE", "/a"),
            b"DELETE /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
            id="what may have a body says that there is none",
        ),
        pytest.param(
            Step("POST", "/a", (("Transfer-Encoding", "chunked"),), b"0\r\n\r\n"),
            b"POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            id="chunks have no length",
        ),
        pytest.param(Step("", "", raw=b"hello"), b"hello", id="raw bytes are sent as they are"),
        pytest.param(
            ask_json("/a", [1]),
            b"POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 3\r\n\r\n[1]",
            id="JSON says so",
        ),
    ],
)
def test_a_step_is_sent_as(step: Step, data: bytes) -> None:
    assert step.encode() == data


@pytest.mark.parametrize(
    ("body", "scrubbed"),
    [
        pytest.param('{"pid": 4711, "a": 1}', '{"pid": 0, "a": 1}', id="a process id"),
        pytest.param('{"memoryUsage": 12345678}', '{"memoryUsage": 0}', id="memory"),
        pytest.param('{"id": "9003"}', '{"id": "<worker>"}', id="a worker's number"),
        pytest.param('"2026-11-21T01:00:56.807Z"', '"<time>"', id="a time"),
        pytest.param("(Request b752912a-0b2e-4e90-99c8-35c1ab166663)", "(Request <uuid>)", id="a request's id"),
        pytest.param("see /srv/store/a.mar", "see <store>/a.mar", id="a path"),
        pytest.param('File "/srv/x/handler.py", line 3', 'File "<file>", line 3', id="a file of a traceback"),
        pytest.param("http://127.0.0.1:40123/ping", "http://127.0.0.1:<port>/ping", id="a port"),
        pytest.param("HandlerTime 0.0040123996", "HandlerTime 0.0040123996", id="a port's digits in a number"),
        pytest.param("Ended 40123.5 ms later", "Ended 40123.5 ms later", id="a number that begins like a port"),
        pytest.param("nothing of one run", "nothing of one run", id="else nothing"),
    ],
)
def test_what_belongs_to_one_run_is_taken_out(body: str, scrubbed: str) -> None:
    answer = Answer(200, "", (), body.encode(), False)

    assert scrub(answer, {"/srv/store": "<store>", "40123": "<port>"}).body.decode() == scrubbed


def test_bytes_that_are_no_text_are_kept() -> None:
    assert scrub(Answer(200, "", (), b"\xff\x00", False), {}).body == b"\xff\x00"


@pytest.mark.parametrize(
    ("version", "sentence"),
    [
        pytest.param(None, "there is no `java`", id="none"),
        pytest.param('openjdk version "11.0.2" 2019', "says: openjdk version", id="too old"),
        pytest.param("Segmentation fault", "says: Segmentation fault", id="not Java"),
    ],
)
def test_a_machine_without_java_17_is_told_what_to_do(version: str | None, sentence: str) -> None:
    with pytest.raises(Missing, match=sentence):
        check_java(version)


@pytest.mark.parametrize("version", ['openjdk version "17.0.15" 2025-04-15', 'openjdk version "21" 2023-09-19'])
def test_java_17_and_later_will_do(version: str) -> None:
    check_java(version)


def test_every_case_that_waits_waits_for_something_that_is_listed_or_there() -> None:
    needs = {case.needs for group in GROUPS for case in group.cases if case.needs}

    assert needs >= PENDING  # a line of pending.py that no case waits for is to be deleted


def test_a_purpose_for_named_cases_names_cases() -> None:
    names = {case.name for group in GROUPS for case in group.cases}

    assert {name for purpose in PURPOSES for name in purpose.cases} <= names


def test_there_are_at_least_150_cases() -> None:
    assert sum(len(group.cases) for group in GROUPS) >= 150


def test_the_page_names_every_case() -> None:
    same = {group.name: {case.name: Judgement(Verdict.SAME) for case in group.cases} for group in GROUPS}

    page = report.page(same)

    assert all(case.name.replace("|", "\\|") in page for group in GROUPS for case in group.cases)
    assert "0 wrong" in page
