"""A handler gives pieces of its answers before it returns the last."""

from pathlib import Path
from typing import Any

import pytest

from tests.handlers.samples import context_of, row
from tsctl.handlers import wire
from tsctl.handlers.runtime.runtime import Runtime
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import HandlerError
from tsctl.handlers.sdk.loader import EntryPoint
from tsctl.handlers.sdk.streaming import send_intermediate_predict_response


class Counting:
    """Answers with two pieces for each row, and a third as the result."""

    def initialize(self, context: Context) -> None:
        pass

    def handle(self, data: list[Any], context: Context) -> list[Any]:
        for step in (1, 2):
            pieces = [f"{each['body'].decode()}{step} " for each in data]
            send_intermediate_predict_response(pieces, context.request_ids, "a piece", 200, context)
        return ["end"] * len(data)


def run(handler: Any, rows: list[wire.Row]) -> tuple[list[list[tuple[int, wire.Answer]]], list[wire.Answer]]:
    sent: list[list[tuple[int, wire.Answer]]] = []
    answers = Runtime(EntryPoint(handler, handler.handle), context_of(Path("/"))).run(rows, sent.append)
    return sent, answers


def test_pieces_go_out_before_the_result() -> None:
    sent, answers = run(Counting(), [row(b"a"), row(b"b")])

    assert [[(number, piece.body) for number, piece in pieces] for pieces in sent] == [
        [(0, b"a1 "), (1, b"b1 ")],
        [(0, b"a2 "), (1, b"b2 ")],
    ]
    assert [answer.body for answer in answers] == [b"end", b"end"]
    assert ("ts_stream_next", "true") in sent[0][0][1].headers


def test_a_wrong_number_of_pieces_fails_the_batch_with_a_sentence() -> None:
    class Short(Counting):
        def handle(self, data: list[Any], context: Context) -> list[Any]:
            send_intermediate_predict_response(["one"], context.request_ids, "", 200, context)
            return data

    sent, answers = run(Short(), [row(b"a"), row(b"b")])

    assert sent == []
    assert all(b"expected 2 pieces, one for each row, and got 1" in answer.body for answer in answers)


def test_a_code_becomes_the_status_unless_the_handler_set_one() -> None:
    class Created(Counting):
        def handle(self, data: list[Any], context: Context) -> list[Any]:
            context.set_response_status(code=202, idx=1)
            send_intermediate_predict_response(["x", "y"], context.request_ids, "", 201, context)
            return ["", ""]

    sent, _ = run(Created(), [row(b"a"), row(b"b")])

    assert [piece.status for _, piece in sent[0]] == [201, 202]


def test_without_a_batch_there_is_nothing_to_send_to() -> None:
    with pytest.raises(HandlerError, match="needs the context of the batch that is running"):
        send_intermediate_predict_response([], {}, "", 200, context_of(Path("/")))


def test_a_part_of_a_batch_streams_to_its_own_rows() -> None:
    class Every(Counting):
        def handle(self, data: list[Any], context: Context) -> list[Any]:
            with context.selected([2, 0]):
                send_intermediate_predict_response(["x", "y"], context.request_ids, "", 200, context)
            return ["", "", ""]

    sent, _ = run(Every(), [row(b"a"), row(b"b"), row(b"c")])

    assert [(number, piece.body) for number, piece in sent[0]] == [(2, b"x"), (0, b"y")]
