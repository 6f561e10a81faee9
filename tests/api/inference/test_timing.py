"""A client that asks for the times of its answer gets them in the header `Server-Timing`; no other does."""

import asyncio

from tests.api.house import House
from tests.http.peer import Answer
from tsctl.daemon.core.timing import Timing

ASKED = "X-Tsctl-Timing: 1"


def test_a_repeated_head_asks_each_time(house: House) -> None:
    async def send() -> list[Answer]:
        await house.serve("m")
        peer = house.send("POST", "/predictions/m", b"x", ASKED)
        house.clock.advance(1.0)
        peer.send(
            b"\r\n".join([b"POST /predictions/m HTTP/1.1", b"Host: a", b"Content-Length: 1", ASKED.encode(), b"", b"y"])
        )
        house.clock.advance(1.0)
        return peer.answers

    assert ["server-timing" in answer.headers for answer in asyncio.run(send())] == [True, True]


def test_times_are_never_negative() -> None:
    timing = Timing()
    timing.note_batch(-0.001, 0.0, 1)

    assert timing.header(0.0) == 'queue;dur=0.0, worker;dur=0.0, total;dur=0.0, batch;desc="1"'
