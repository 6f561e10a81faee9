"""Generators answer in pieces, and coroutines wait at the same time."""

import asyncio
from typing import Any

from tests.handlers.typed.calls import ask, request, runtime_of, told
from tsctl.handlers import wire


def test_a_generator_of_a_row_answers_in_pieces_in_turns() -> None:
    def predict(text: str) -> Any:
        yield from text

    sent: list[tuple[int, bytes]] = []
    answers = runtime_of(predict).run(
        [request(("body", "", b"ab")), request(("body", "", b"c"), number=1)],
        lambda pieces: sent.extend((place, piece.body) for place, piece in pieces),
    )

    assert sent == [(0, b"a"), (1, b"c"), (0, b"b")]
    assert told(answers) == [(200, ""), (200, "")]


def test_a_generator_that_raises_fails_its_row_and_the_others_go_on() -> None:
    def predict(number: int) -> Any:
        yield 1
        yield 1 // number

    sent: list[tuple[int, bytes]] = []
    answers = runtime_of(predict).run(
        [request(("body", "", b"0")), request(("body", "", b"1"), number=1)],
        lambda pieces: sent.extend((place, piece.body) for place, piece in pieces),
    )

    assert sent == [(0, b"1\n"), (1, b"1\n"), (1, b"1\n")]
    assert [each.status for each in answers] == [503, 200]


def test_a_generator_of_a_batch_yields_a_piece_for_each_row() -> None:
    def predict(texts: list[str]) -> Any:
        yield ["x", None]
        yield [{"a": 1}, "y"]

    sent: list[tuple[int, bytes]] = []
    answers = runtime_of(predict).run(
        [request(("body", "", b"0")), request(("body", "", b"1"), number=1)],
        lambda pieces: sent.extend((place, piece.body) for place, piece in pieces),
    )

    assert sent == [(0, b"x"), (0, b'{"a":1}\n'), (1, b"y")]
    assert [each.status for each in answers] == [200, 200]


def test_a_generator_of_a_batch_that_yields_too_little_is_told_so() -> None:
    def predict(texts: list[str]) -> Any:
        yield ["x"]

    answers = ask(predict, b"a", b"b")

    assert answers[0].body.startswith(b"`predict` yielded 1 answers; expected a list of 2")


def test_coroutines_of_a_batch_wait_at_the_same_time() -> None:
    waiting: list[str] = []
    everyone = asyncio.Event()

    async def predict(text: str) -> str:
        waiting.append(text)
        if len(waiting) == 3:
            everyone.set()
        await everyone.wait()
        if text == "b":
            raise ValueError("not b")
        return text.upper()

    answers = ask(predict, b"a", b"b", b"c")

    assert told(answers) == [
        (200, "A"),
        (503, "Prediction failed: ValueError: not b (Request r1)"),
        (200, "C"),
    ]


def test_a_coroutine_may_take_the_batch_and_a_generator_may_wait() -> None:
    async def whole(texts: list[str]) -> list[str]:
        await asyncio.sleep(0)
        return [each.upper() for each in texts]

    async def pieces(text: str) -> Any:
        for each in text:
            await asyncio.sleep(0)
            yield each

    async def pieces_of_batch(texts: list[str]) -> Any:
        yield texts

    sent: list[tuple[int, bytes]] = []

    def send(each: list[tuple[int, wire.Answer]]) -> None:
        sent.extend((place, piece.body) for place, piece in each)

    rows = [request(("body", "", b"ab")), request(("body", "", b"c"), number=1)]

    assert told(ask(whole, b"a", b"b")) == [(200, "A"), (200, "B")]
    assert [each.status for each in runtime_of(pieces).run(rows, send)] == [200, 200]
    assert sorted(sent) == [(0, b"a"), (0, b"b"), (1, b"c")]
    sent.clear()
    assert [each.status for each in runtime_of(pieces_of_batch).run(rows, send)] == [200, 200]
    assert sent == [(0, b"ab"), (1, b"c")]
