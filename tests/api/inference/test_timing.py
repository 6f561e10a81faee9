"""A client that asks for the times of its answer gets them in the header `Server-Timing`; no other does."""

import asyncio
from pathlib import Path

import pytest

from tests.api.house import House
from tests.http.peer import Answer
from tsctl.daemon.core.job import Reply
from tsctl.daemon.core.timing import Timing

ASKED = "X-Tsctl-Timing: 1"


def answers(house: House, *headers: str, count: int = 1, target: str = "/predictions/m") -> list[Answer]:
    """Send requests in one turn, each with these headers; return their answers."""

    async def send() -> list[Answer]:
        await house.serve("m", config="batchSize: 4\nmaxBatchDelay: 20\nbatching: fixed\n")
        house.engine.batch_time = lambda size: 0.05
        peers = [house.send("POST", target, b"x", *headers) for _ in range(count)]
        house.clock.advance(1.0)
        return [answer for peer in peers for answer in peer.answers]

    return asyncio.run(send())


def test_an_answer_tells_its_times_and_its_batch(tmp_path: Path) -> None:
    timings = [answer.headers["server-timing"] for answer in answers(House(tmp_path), ASKED, count=2)]

    assert timings == ['queue;dur=20.0, worker;dur=50.0, total;dur=70.0, batch;desc="2"'] * 2


@pytest.mark.parametrize("headers", [[], ["X-Tsctl-Timing: 0"], ["X-Tsctl-Timing: yes"]])
def test_no_other_answer_tells_them(tmp_path: Path, headers: list[str]) -> None:
    (answer,) = answers(House(tmp_path), *headers)

    assert answer.status == 200 and "server-timing" not in answer.headers


def test_a_failed_prediction_tells_its_times(house: House) -> None:
    house.engine.answer = lambda job: Reply(500, b"no", error="E")

    (answer,) = answers(house, ASKED)

    assert answer.status == 500 and answer.headers["server-timing"].startswith("queue;dur=20.0, worker;dur=50.0")


def test_a_request_that_expires_in_the_queue_tells_its_total_time(tmp_path: Path) -> None:
    (answer,) = answers(House(tmp_path), ASKED, "X-Request-Deadline-Ms: 1")

    assert answer.status == 504
    assert answer.headers["server-timing"].startswith("total;dur=")


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


def test_a_batch_that_was_sent_ahead_waits_until_its_worker_begins(house: House) -> None:
    async def send() -> Answer:
        await house.serve("m", config="batchSize: 1\nbatching: greedy\n")
        house.engine.batch_time = lambda size: 1.0
        peers = [house.send("POST", "/predictions/m", b"x", ASKED) for _ in range(2)]
        house.clock.advance(5.0)
        return peers[1].answers[0]

    assert asyncio.run(send()).headers["server-timing"] == (
        'queue;dur=1000.0, worker;dur=1000.0, total;dur=2000.0, batch;desc="1"'
    )


def test_times_are_never_negative() -> None:
    timing = Timing()
    timing.take(-0.001, 0.0, 1)

    assert timing.header(0.0) == 'queue;dur=0.0, worker;dur=0.0, total;dur=0.0, batch;desc="1"'
