"""The headers of sequences."""

import json

from tests.kit.said import said_in
from tsctl.daemon.extensions.sequences.marks import USUAL, SequenceHeaders, ended_by, read_mark, with_mark, with_new_id

NAMES = SequenceHeaders("X-Dialogue", "X-Begin", "X-End")


@said_in("marks.txt")
def test_what_headers_say_of_a_sequence(given: str) -> str:
    which, headers = json.loads(given)
    names = {"usual": USUAL, "other": NAMES}[which]
    return f"{read_mark(headers, names)}, ends {ended_by(headers, names)}"


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


def test_a_new_id_is_told_under_the_chosen_names() -> None:
    mark = read_mark([("x-begin", "false")], NAMES)

    assert with_mark([("x-begin", "false")], mark, NAMES) == [("X-Dialogue", mark.id), ("X-Begin", "true")]
    assert with_new_id([("ts_request_sequence_id", "c")], mark, NAMES)[-1] == ("X-Dialogue", mark.id)
    assert with_new_id([("x-dialogue", "c")], mark, NAMES) == [("x-dialogue", "c")]
