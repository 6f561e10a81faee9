"""Answers in the order of their requests, although the requests run at the same time."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

import pytest

from tsctl.daemon.extensions.grpc.waiting.ordered_answers import AHEAD, MOST, in_order


async def each(*items: str) -> AsyncIterator[str]:
    for item in items:
        yield item


async def test_a_later_request_is_begun_while_an_earlier_one_waits() -> None:
    gates = {name: asyncio.Event() for name in "ab"}

    async def answers(name: str) -> AsyncGenerator[str]:
        if name == "b":
            gates["a"].set()  # a waits for that
        await gates["a"].wait()
        yield f"{name}1"
        yield f"{name}2"

    assert [answer async for answer in in_order(each("a", "b"), answers, len)] == ["a1", "a2", "b1", "b2"]


async def test_pieces_come_while_their_request_still_runs() -> None:
    go = asyncio.Event()

    async def answers(name: str) -> AsyncGenerator[str]:
        yield f"{name}1"
        await go.wait()
        yield f"{name}2"

    stream = in_order(each("a"), answers, len)
    assert await anext(stream) == "a1"
    go.set()
    assert [answer async for answer in stream] == ["a2"]


async def test_no_more_than_so_many_are_begun() -> None:
    begun: list[str] = []
    go = asyncio.Event()

    async def answers(name: str) -> AsyncGenerator[str]:
        begun.append(name)
        await go.wait()
        yield name

    names = [f"{number}" for number in range(2 * MOST)]
    reading = asyncio.ensure_future(_all(in_order(each(*names), answers, len)))
    for _ in range(3 * MOST):
        await asyncio.sleep(0)
    assert len(begun) == MOST

    go.set()
    assert await reading == names


async def test_a_stream_that_is_left_ends_what_it_has_begun() -> None:
    ended = asyncio.Event()

    async def answers(name: str) -> AsyncGenerator[str]:
        try:
            yield name
            await asyncio.Event().wait()
        finally:
            ended.set()

    stream = in_order(each("a"), answers, len)
    assert await anext(stream) == "a"
    await stream.aclose()

    assert ended.is_set()


async def test_a_client_that_does_not_read_holds_the_answers_up() -> None:
    made: list[str] = []

    async def answers(name: str) -> AsyncGenerator[str]:
        for number in range(1000):
            made.append(name)
            yield f"{number}".ljust(AHEAD // 4)

    stream = in_order(each("a", "b"), answers, len)
    await anext(stream)
    for _ in range(100):
        await asyncio.sleep(0)
    assert made.count("a") <= 7 and made.count("b") <= 6  # what may be held, the one taken, and the one that waits

    assert len([answer async for answer in stream]) == 1999


async def test_an_error_of_the_client_ends_the_stream() -> None:
    async def broken() -> AsyncIterator[str]:
        yield "a"
        raise ValueError("no message")

    async def answers(name: str) -> AsyncGenerator[str]:
        yield name

    stream = in_order(broken(), answers, len)
    assert await anext(stream) == "a"
    with pytest.raises(ValueError, match="no message"):
        await anext(stream)


async def _all(stream: AsyncGenerator[str]) -> list[str]:
    return [item async for item in stream]
