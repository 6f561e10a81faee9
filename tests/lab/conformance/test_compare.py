"""Two answers: the same, different on purpose, or wrong."""

from dataclasses import replace

import pytest

from tests.lab.conformance.case import GROUPS
from tests.lab.conformance.compare import PURPOSES, Purpose, Verdict, differences, judge
from tests.lab.conformance.scrub import shape
from tests.lab.conformance.talk import Answer

PLAIN = Answer(200, "OK", (("Content-Type", "application/json"), ("X-Mine", "a")), b'{"a": 1}', False)


def told(theirs: Answer, ours: Answer) -> list[str]:
    return [difference.where for difference in differences(1, theirs, ours)]


# fmt: off
CHANGES: dict[str, tuple[dict[str, object], list[str]]] = {
    "a status": ({"status": 201}, ["status"]),
    "a phrase": ({"reason": "Fine"}, ["reason"]),
    "a connection that is closed": ({"closed": True}, ["closed"]),
    "a header that is missing": ({"headers": PLAIN.headers[:1]}, ["header x-mine"]),
    "a header too many": ({"headers": (*PLAIN.headers, ("B", "c"))}, ["header b"]),
    "a header's value": ({"headers": (PLAIN.headers[0], ("X-Mine", "b"))}, ["header x-mine"]),
    "a number": ({"body": b'{"a": 2}'}, ["body.a"]),
    "an integer that became a float": ({"body": b'{"a": 1.0}'}, ["body.a"]),
    "an integer that became a boolean": ({"body": b'{"a": true}'}, ["body.a"]),
    "a key too many": ({"body": b'{"a": 1, "b": null}'}, ["body.b"]),
    "a key that is missing": ({"body": b"{}"}, ["body.a"]),
    "another document": ({"body": b"[1]"}, ["body"]),
    "a text instead of a document": ({"body": b"text"}, ["body"]),
    "the same answer": ({}, []),
    "JSON that is printed otherwise": ({"body": b'{\n  "a": 1\n}\n'}, []),
    "names in any case": ({"headers": (("content-type", "application/json"), ("x-mine", "a"))}, []),
}
EQUAL = {
    "a phrase where there was none": (replace(PLAIN, reason=""), PLAIN),
    "floats that are nearly equal": (replace(PLAIN, body=b"[0.50000, NaN]"), replace(PLAIN, body=b"[0.50004, NaN]")),
    "keys in any order": (replace(PLAIN, body=b'{"a": 1, "b": 2}'), replace(PLAIN, body=b'{"b": 2, "a": 1}')),
}
# fmt: on


@pytest.mark.parametrize(("change", "where"), CHANGES.values(), ids=CHANGES)
def test_a_difference_is_found_where_it_is_and_nowhere_else(change: dict[str, object], where: list[str]) -> None:
    assert told(PLAIN, replace(PLAIN, **change)) == where  # type: ignore[arg-type]


@pytest.mark.parametrize(("theirs", "ours"), EQUAL.values(), ids=EQUAL)
def test_what_is_no_difference(theirs: Answer, ours: Answer) -> None:
    assert told(theirs, ours) == []


def test_floats_that_differ_by_more_than_one_in_ten_thousand_differ() -> None:
    assert told(replace(PLAIN, body=b"[0.5]"), replace(PLAIN, body=b"[0.5002]")) == ["body.0"]


STATUS = Purpose("because", says="status: 200 → 201")


def test_a_difference_with_a_purpose_is_on_purpose() -> None:
    judgement = judge("case", [PLAIN], [replace(PLAIN, status=201)], [STATUS])

    assert (judgement.verdict, judgement.purposes) == (Verdict.ON_PURPOSE, (STATUS,))


def test_one_difference_without_a_purpose_makes_the_case_wrong() -> None:
    ours = replace(PLAIN, status=201, closed=True)

    judgement = judge("case", [PLAIN, PLAIN], [PLAIN, ours], [STATUS])

    assert judgement.verdict is Verdict.WRONG
    assert [str(difference) for difference in judgement.wrong] == ["step 2: closed: False there, True here"]


def test_a_purpose_for_other_cases_does_not_count() -> None:
    purpose = Purpose("because", statuses="200 201", cases=frozenset({"another case"}))

    assert judge("case", [PLAIN], [replace(PLAIN, status=201)], [purpose]).verdict is Verdict.WRONG


def test_a_purpose_for_named_cases_names_cases() -> None:
    assert {name for each in PURPOSES for name in each.cases} <= {
        name for each in GROUPS.values() for name in each.cases
    }


def test_a_missing_answer_is_no_comparison() -> None:
    with pytest.raises(ValueError, match="shorter"):
        judge("case", [PLAIN, PLAIN], [PLAIN], [])


METRICS = """\
# HELP QueueTime Torchserve prometheus gauge metric with unit: Milliseconds
# TYPE QueueTime gauge
QueueTime{Level="Host",Hostname="h",} 3.0
# TYPE ts_inference_requests_total counter
ts_inference_requests_total{model_name="m",model_version="1.0",} 2.0
"""


def test_of_metrics_only_names_types_labels_and_what_is_counted_make_a_difference() -> None:
    *gauge, counter, value = METRICS.splitlines(keepends=True)
    other = [counter, value, *gauge[1:2], 'QueueTime{Hostname="h",Level="Host"} 4.5\n']

    assert shape("".join(other)) == shape(METRICS)
    assert shape(METRICS.replace("2.0", "3.0")) != shape(METRICS) != shape(METRICS.replace("Level=", "Kind="))
