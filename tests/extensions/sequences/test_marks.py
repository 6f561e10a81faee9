"""The headers of sequences."""

import pytest

from tsctl.daemon.extensions.sequences.marks import SequenceHeaders, ended_by, read_mark, with_mark, with_new_id


def test_the_client_names_the_sequence() -> None:
    mark = read_mark([("ts_request_sequence_id", "a"), ("ts_request_sequence_end", "true")])

    assert mark == ("a", False, True, False)


def test_names_are_compared_without_case_and_the_last_counts() -> None:
    mark = read_mark([("Ts_Request_Sequence_Id", "a"), ("TS_REQUEST_SEQUENCE_ID", " b ")])

    assert mark.id == "b"


@pytest.mark.parametrize("value", ["false", "", "1", "yes"])
def test_only_true_is_true(value: str) -> None:
    assert not read_mark([("ts_request_sequence_id", "a"), ("ts_request_sequence_start", value)]).start


def test_without_an_id_a_new_sequence_starts_and_the_handler_and_the_client_are_told() -> None:
    headers = [("x", "y"), ("ts_request_sequence_start", "false")]

    mark = read_mark(headers)

    assert mark.start and mark.made and mark.id.startswith("ts-seq-")
    assert with_mark(headers, mark) == [
        ("x", "y"), ("ts_request_sequence_id", mark.id), ("ts_request_sequence_start", "true")
    ]  # fmt: skip
    assert with_new_id([("a", "b")], mark) == [("a", "b"), ("ts_request_sequence_id", mark.id)]
    assert read_mark(headers).id != mark.id


def test_the_handlers_own_header_wins() -> None:
    mark = read_mark([])
    headers = [("ts_request_sequence_id", "of the handler")]

    assert with_new_id(headers, mark) == headers


def test_headers_of_a_client_that_names_its_sequence_stay() -> None:
    headers = [("ts_request_sequence_id", "a")]

    mark = read_mark(headers)

    assert with_mark(headers, mark) == headers
    assert with_new_id([], mark) == []


def test_an_answer_may_end_several_sequences() -> None:
    assert ended_by([("a", "b"), ("ts_request_sequence_end", "x; y;;z ")]) == ["x", "y", "z"]


NAMES = SequenceHeaders("X-Dialogue", "X-Begin", "X-End")


def test_with_other_names_only_these_count() -> None:
    headers = [("x-dialogue", "a"), ("X-BEGIN", "true"), ("ts_request_sequence_id", "b")]

    assert read_mark(headers, NAMES) == ("a", True, False, False)
    assert read_mark([("X-Dialogue", "a"), ("X-End", "true")], NAMES) == ("a", False, True, False)
    assert ended_by([("x-end", "a;b"), ("ts_request_sequence_end", "c")], NAMES) == ["a", "b"]


def test_a_new_id_is_told_under_the_chosen_names() -> None:
    mark = read_mark([("x-begin", "false")], NAMES)

    assert with_mark([("x-begin", "false")], mark, NAMES) == [("X-Dialogue", mark.id), ("X-Begin", "true")]
    assert with_new_id([("ts_request_sequence_id", "c")], mark, NAMES)[-1] == ("X-Dialogue", mark.id)
    assert with_new_id([("x-dialogue", "c")], mark, NAMES) == [("x-dialogue", "c")]
