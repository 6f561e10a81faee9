"""The closed and the open loop, against a server that misbehaves."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tsctl.loadgen.loop import Loop
from tsctl.loadgen.loops import ClosedLoop, OpenLoop, TimerFd
from tsctl.loadgen.order import LoadOrder, PreparedOrder

GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
LAST = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
FULL = b'{"code": 503, "message": "The queue is full."}'
BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: %d\r\n\r\n%s" % (len(FULL), FULL)

Load = dict[str, Any]
Behaviour = Callable[[int], bytes | None]  # the number of a request, from 0 → its answer; None closes


class Server(asyncio.Protocol):
    """Answers each request, which is one byte; counts them over all connections."""

    count = 0
    connections = 0
    open = 0

    def __init__(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        Server.connections += 1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        Server.open += 1

    def connection_lost(self, exc: Exception | None) -> None:
        Server.open -= 1

    def data_received(self, data: bytes) -> None:
        for _ in data:
            answer = self._behaviour(Server.count)
            Server.count += 1
            assert isinstance(self._transport, asyncio.Transport)
            if answer is None:
                self._transport.abort()
            else:
                self._transport.write(answer)


def run(kind: type[Loop], path: Path, behaviour: Behaviour | None, *, cut: bool = False, **order: object) -> Loop:
    """Run a loop against such a server, or where nobody listens, to its end."""

    async def main() -> Loop:
        Server.count = Server.connections = Server.open = 0
        loop = asyncio.get_running_loop()
        server = None if behaviour is None else await loop.create_unix_server(lambda: Server(behaviour), str(path))
        broken_off = asyncio.Event()
        if cut:
            broken_off.set()
        sending = PreparedOrder(LoadOrder(target="/", unix=str(path), **order), b"r", {"path": str(path)})  # type: ignore[arg-type]
        running = kind(sending, loop)
        await running.run(broken_off)
        if server is not None:
            server.close()
        while len(asyncio.all_tasks()) > 1 or Server.open:  # noqa: ASYNC110 - what is cut off is closed in a later turn
            await asyncio.sleep(0)
        return running

    return asyncio.run(main())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s"


@pytest.mark.parametrize(("kind", "load"), [(ClosedLoop, {"connections": 3}), (OpenLoop, {"rate": 2000.0})])
class TestBoth:
    def test_each_request_is_sent_once(self, path: Path, kind: type[Loop], load: Load) -> None:
        done = run(kind, path, lambda n: GOOD, requests=50, **load)

        assert (Server.count, done.tally.latencies.count, done.tally.errors) == (50, 50, 0)

    def test_a_closed_connection_is_an_error_and_is_replaced(self, path: Path, kind: type[Loop], load: Load) -> None:
        done = run(kind, path, lambda n: None if n % 10 == 0 else GOOD, requests=50, **load)

        assert (done.tally.failures, done.tally.latencies.count) == ({"closed": 5}, 45)

    def test_a_connection_closed_after_its_answer_is_no_error(self, path: Path, kind: type[Loop], load: Load) -> None:
        done = run(kind, path, lambda n: LAST, requests=20, **load)

        assert (done.tally.errors, done.tally.latencies.count) == (0, 20)

    def test_errors_are_counted_by_status_with_the_reason_of_the_first(
        self, path: Path, kind: type[Loop], load: Load
    ) -> None:
        done = run(kind, path, lambda n: BUSY if n % 2 else GOOD, requests=20, **load)

        assert done.tally.statuses == {200: 10, 503: 10}
        assert done.tally.reasons == {503: "The queue is full."}

    def test_an_answer_that_does_not_come_is_a_timeout(self, path: Path, kind: type[Loop], load: Load) -> None:
        done = run(kind, path, lambda n: b"" if n == 0 else GOOD, requests=5, timeout=0.01, **load)

        assert (done.tally.failures, done.tally.latencies.count) == ({"timeout": 1}, 4)

    def test_where_nobody_listens_each_request_is_refused(self, path: Path, kind: type[Loop], load: Load) -> None:
        done = run(kind, path, None, seconds=0.05, **load)

        assert done.tally.failures["refused"] > 0
        assert done.tally.latencies.count == 0

    def test_broken_off_it_counts_what_is_still_unanswered(
        self, path: Path, kind: type[Loop], load: Load, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tsctl.loadgen.loop.GOODBYE", 0.01)

        done = run(kind, path, lambda n: b"", cut=True, seconds=60.0, **load)

        assert set(done.tally.failures) <= {"unanswered"}


def test_the_closed_loop_has_no_more_connections_than_clients(path: Path) -> None:
    run(ClosedLoop, path, lambda n: GOOD, requests=100, connections=4)

    assert Server.connections == 4


def test_the_open_loop_sends_though_nothing_is_answered(path: Path) -> None:
    done = run(OpenLoop, path, lambda n: b"", requests=30, rate=3000.0, timeout=0.02)

    assert (Server.count, done.tally.failures) == (30, {"timeout": 30})


def test_in_the_open_loop_waiting_for_a_connection_counts(path: Path) -> None:
    """One connection, a first answer that is lost after 0.2 s: all others waited, and their latencies say so."""
    done = run(
        OpenLoop, path, lambda n: b"" if n == 0 else GOOD, requests=20, rate=1000.0, spacing="constant",
        connections=1, timeout=0.1,
    )  # fmt: skip

    assert done.tally.latencies.count == 19
    assert done.tally.latencies.least > 0.08


def test_even_spacing_is_even(path: Path) -> None:
    done = run(OpenLoop, path, lambda n: GOOD, requests=11, rate=100.0, spacing="constant")

    assert done.seconds >= 0.1


async def test_the_timer_calls_back_once_for_each_moment() -> None:
    loop = asyncio.get_running_loop()
    called = loop.create_future()
    timer = TimerFd(loop, lambda: called.set_result(loop.time()))
    wanted = loop.time() + 0.005

    timer.at(wanted)
    at: float = await called
    timer.close()

    assert at >= wanted


def test_small_requests_are_sent_at_once() -> None:
    from tsctl.loadgen.order import no_delay

    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as unix:
        no_delay(tcp)
        no_delay(unix)

        assert tcp.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
