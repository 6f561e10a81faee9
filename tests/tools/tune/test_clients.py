"""The clients of a trial: each waits for its answer, pauses, and sends again."""

import asyncio

import pytest

from daemon.tools.tune.load import Turnarounds
from daemon.tools.tune.measuring.clients import ClientOrder, ClientResults, play
from daemon.tools.tune.measuring.rehearsal import LEAST_PAUSE, pauses_of

GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
IN_PIECES = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"
BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"


class Server(asyncio.Protocol):
    """Answers each request, which is one byte; an empty answer closes the connection."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        assert len(data) == 1, "nobody sends before the last request is answered"
        if self._answer:
            self._transport.write(self._answer)
        else:
            self._transport.abort()


def seen(answer: bytes, **changes: object) -> ClientResults:
    async def scenario() -> ClientResults:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Server(answer), "127.0.0.1", 0)
        asked = {"clients": 3, "warm_up": 0.0, "seconds": 0.02, "enough": 20} | changes
        calls = ClientOrder(server.sockets[0].getsockname()[1], "/", "", 0, **asked)  # type: ignore[arg-type]
        try:
            return await asyncio.to_thread(play, calls, b"r")
        finally:
            server.close()

    return asyncio.run(scenario())


@pytest.mark.parametrize("answer", [GOOD, IN_PIECES], ids=["whole", "in pieces"])
def test_they_see_how_long_answers_take(answer: bytes) -> None:
    found = seen(answer)

    assert found.throughput > 0
    assert 0 < found.p50 <= found.p99
    assert found.errors == 0


def test_they_wait_for_one_answer_however_late_it_is() -> None:
    assert seen(GOOD, seconds=0.0).throughput > 0


def test_what_is_refused_is_an_error() -> None:
    found = seen(BUSY)

    assert (found.throughput, found.errors > 0) == (0, True)


def test_a_server_that_goes_away_ends_it() -> None:
    with pytest.raises(ConnectionError):
        seen(b"")


def test_they_pause_between_an_answer_and_the_next_request() -> None:
    assert seen(GOOD, pauses=[(0.01, 0.01, 1.0)]).throughput <= 3 / 0.01


@pytest.mark.parametrize(
    ("at_once", "pauses"),
    [
        pytest.param(0.25 - LEAST_PAUSE / 2, [], id="what they take that do not pause"),
        pytest.param(0.125, [(0.0, 0.125, 1.0), (0.125, 1.875, 1.0)], id="more: the rest is a pause"),
    ],
)
def test_a_pause_is_what_a_client_takes_longer_than_one_that_sends_at_once(
    at_once: float, pauses: list[tuple[float, float, float]]
) -> None:
    turnarounds = Turnarounds([(0.0, 0.25), (0.25, 2.0)], [1.0, 1.0])

    assert pauses_of(turnarounds, at_once) == pauses
