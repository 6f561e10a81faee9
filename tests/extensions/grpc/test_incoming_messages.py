"""Messages are read in turns, and slow ones are measured and bounded."""

import asyncio
import gc
import socket
import weakref
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.extensions.grpc.client import KEEP_ALIVE, grpc, grpc_house, prediction
from tests.extensions.grpc.test_predictions import failure
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.core.errors import BadRequest, ReceivedTooSlowly
from tsctl.daemon.extensions.grpc.torchserve import InferenceService
from tsctl.daemon.extensions.grpc.waiting.incoming_messages import (
    AT_ONCE,
    MUCH,
    SLOW,
    Activity,
    Incoming,
    Sockets,
    StreamIdle,
)
from tsctl.daemon.http.bounds.receiving import NoRoom, ReceiveBudget

MIB = 1024 * 1024
TIMEOUT = 60.0


class Clients:
    """Calls whose messages come when a test says so.

    Attributes:
        sent: bytes that the kernel has received from each peer.
    """

    def __init__(self, limit: int = 16 * MIB, most: int = MIB) -> None:
        self.clock = FakeClock()
        self.budget = ReceiveBudget(limit)
        self.sent: dict[str, int] = {}
        self.incoming = Incoming(self.clock, most, self.budget, TIMEOUT, KEEP_ALIVE, self._received)
        self._messages: list[asyncio.Future[bytes]] = []

    def _received(self, peers: Collection[str]) -> Mapping[str, int]:
        return {peer: self.sent.get(peer, 0) for peer in peers}

    async def call(self, peer: str = "a", activity: Activity | None = None) -> asyncio.Task[bytes]:
        """Begin to read a message; `activity` is that of its stream."""

        async def read() -> bytes:
            self._messages.append(asyncio.get_running_loop().create_future())
            return await self._messages[-1]

        task = asyncio.ensure_future(self.incoming.read(peer, read, activity))
        await self.turn()
        return task

    @property
    def begun(self) -> int:
        """The calls whose messages have been asked for."""
        return len(self._messages)

    async def come(self, number: int, size: int = 1) -> None:
        self._messages[number].set_result(bytes(size))
        await self.turn()

    async def pass_by(self, seconds: float, **sent: int) -> None:
        """Let time pass, and bytes arrive."""
        for peer, count in sent.items():
            self.sent[peer] = self.sent.get(peer, 0) + count
        self.clock.advance(seconds)
        await self.turn()

    async def turn(self) -> None:
        for _ in range(4):
            await asyncio.sleep(0)


async def end(*tasks: asyncio.Task[bytes]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_message_that_has_no_turn_is_not_asked_for_until_another_has_come() -> None:
    clients = Clients()
    calls = [await clients.call() for _ in range(AT_ONCE + 2)]
    assert clients.begun == AT_ONCE

    await clients.come(0)

    assert clients.begun == AT_ONCE + 1
    await end(*calls)
    assert clients.budget.used == 0 and "0 read, 0 wait" in repr(clients.incoming)


async def test_a_call_that_is_cancelled_while_it_waits_takes_no_turn() -> None:
    clients = Clients()
    calls = [await clients.call() for _ in range(AT_ONCE + 2)]
    await end(calls[AT_ONCE])

    await clients.come(0)

    assert clients.begun == AT_ONCE + 1
    await end(*calls)
    assert [await clients.call() for _ in range(AT_ONCE)] and clients.begun == 2 * AT_ONCE + 1


async def test_clients_that_send_nothing_delay_others_by_a_moment() -> None:
    clients = Clients()
    silent = [await clients.call() for _ in range(AT_ONCE)]
    honest = await clients.call("b")
    assert clients.begun == AT_ONCE

    await clients.pass_by(3 * SLOW)
    await clients.come(AT_ONCE, 7)

    assert len(await honest) == 7
    await end(*silent)


async def test_while_much_arrives_turns_are_waited_for() -> None:
    clients = Clients(limit=1024 * MIB, most=MIB)
    calls = [await clients.call() for _ in range(AT_ONCE + 1)]

    for _ in range(10):
        await clients.pass_by(SLOW, a=MUCH)

    assert clients.begun == AT_ONCE
    await end(*calls)


async def test_after_a_large_message_only_as_many_are_read_as_fit() -> None:
    clients = Clients(limit=16 * MIB, most=4 * MIB)
    first = await clients.call()
    await clients.come(0, 4 * MIB)
    await first

    calls = [await clients.call() for _ in range(5)]

    assert clients.begun == 1 + 2  # twice two of 4 MiB are 16 MiB
    await end(*calls)


async def test_bytes_of_slow_messages_count_with_those_of_bodies_until_they_have_come() -> None:
    clients = Clients(limit=64 * MIB, most=4 * MIB)
    calls = [await clients.call() for _ in range(AT_ONCE + 1)]
    await clients.pass_by(2 * SLOW)

    await clients.pass_by(1.0, a=3 * MIB)
    assert clients.budget.used == 3 * MIB
    await clients.come(0, 2 * MIB)
    await clients.pass_by(1.0)
    assert MIB - 2048 <= clients.budget.used <= MIB
    await end(*calls)
    await clients.pass_by(2.0)

    assert clients.budget.used == 0


async def test_a_connection_that_appears_later_is_counted_from_its_first_call() -> None:
    clients = Clients(limit=64 * MIB)
    calls = [await clients.call() for _ in range(AT_ONCE + 1)]
    await clients.pass_by(2 * SLOW)

    calls.append(await clients.call("b"))
    await clients.pass_by(1.0, b=MIB)

    assert clients.budget.used == MIB
    await end(*calls)


async def test_beyond_the_budget_the_youngest_slow_calls_of_the_fullest_connection_end() -> None:
    clients = Clients(limit=16 * MIB)
    full = [await clients.call("a") for _ in range(4)]
    other = [await clients.call("b") for _ in range(AT_ONCE)]
    await clients.pass_by(2 * SLOW)

    await clients.pass_by(1.0, a=16 * MIB, b=3 * MIB)

    assert [each.done() for each in full] == [False, False, False, True]
    with pytest.raises(NoRoom, match="max_receiving_bytes"):
        await full[-1]
    assert not any(each.done() for each in other)
    await end(*full, *other)


async def test_few_slow_calls_are_neither_measured_nor_ended() -> None:
    clients = Clients(limit=16 * MIB, most=MIB)
    calls = [await clients.call() for _ in range(8)]

    await clients.pass_by(10.0, a=100 * MIB)

    assert clients.budget.used == 0 and not any(each.done() for each in calls)
    await end(*calls)


async def test_a_message_has_the_time_of_a_body() -> None:
    clients = Clients()
    late = await clients.call()

    await clients.pass_by(TIMEOUT - 1.0)
    assert not late.done()
    await clients.pass_by(2.0)

    with pytest.raises(ReceivedTooSlowly, match="that --body-timeout allows"):
        await late


async def test_a_stream_may_be_silent_for_hours_but_for_the_time_of_a_connection_while_its_place_is_wanted() -> None:
    clients, crowded = Clients(), False
    activity = Activity(clients.clock.now, lambda: crowded)
    silent = await clients.call(activity=activity)

    await clients.pass_by(100 * KEEP_ALIVE)
    assert not silent.done()
    crowded = True
    later = await clients.call(activity=activity)  # whose request before has just come
    await clients.pass_by(1.0)

    with pytest.raises(StreamIdle, match=r"was idle for 75 s \(--keep-alive\), and as many gRPC calls .* Open another"):
        await silent
    assert not later.done()
    await end(later)


async def test_a_stream_is_not_idle_while_its_requests_are_answered() -> None:
    clients = Clients()
    activity = Activity(clients.clock.now, lambda: True)
    activity.begin()
    reading = await clients.call(activity=activity)

    await clients.pass_by(2 * KEEP_ALIVE)
    activity.end()
    await clients.pass_by(KEEP_ALIVE - 2.0)
    assert not reading.done()
    await clients.pass_by(4.0)

    with pytest.raises(StreamIdle):
        await reading


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_kernel_counts_the_bytes_of_a_connection(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip("without IPv6")
    with listening, socket.create_connection(listening.getsockname()[:2]) as client:
        server, _ = listening.accept()
        port = client.getsockname()[1]
        peer = f"%5B{host}%5D:{port}" if ":" in host else f"{host}:{port}"
        sockets = Sockets()
        with server:
            client.sendall(bytes(1000))
            server.recv(1000, socket.MSG_WAITALL)
            assert sockets.received([peer, "127.0.0.1:1"]) == {peer: 1000}
            client.sendall(bytes(10))
            server.recv(10, socket.MSG_WAITALL)
            assert sockets.received([peer]) == {peer: 1010}

        assert sockets.received([peer]) == {}


@pytest.mark.slow
async def test_a_refused_call_leaves_nothing_of_its_request_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gone without the garbage collector: a thousand requests of 1 MiB stayed, each in a cycle of its own."""

    class Large:
        pass

    left: list[weakref.ref[Large]] = []

    async def ping(self: Any, request: Any, head: Any) -> Any:
        request = Large()
        left.append(weakref.ref(request))
        raise BadRequest("no")

    monkeypatch.setattr(InferenceService, "ping", ping)
    async with grpc_house(tmp_path) as made:
        gc.disable()
        try:
            assert await failure(made, made.call("Ping")) == ("INVALID_ARGUMENT", "no")
            await asyncio.sleep(0)
            assert [each() for each in left] == [None]
        finally:
            gc.enable()


@pytest.mark.slow
async def test_the_message_of_a_call_too_many_is_not_read_and_health_is_answered(tmp_path: Path) -> None:
    async with grpc_house(tmp_path, calls=2) as made:
        made.house.engine.batch_time = lambda _size: 5.0
        model = await made.house.serve("m")
        running = [made.call("Predictions", prediction("m", data=b"1")) for _ in range(2)]
        await made.house.until(lambda: model.running and made.calls.running == 2)

        code, text = await failure(made, made.call("Predictions", prediction("m", data=b"1")))

        assert code == "RESOURCE_EXHAUSTED" and text.startswith("Too many gRPC calls at once: the limit is 2 ")
        assert (await made.settled(made.call("Check", None, "grpc.health.v1.Health"))).status
        for call in running:
            call.cancel()


@pytest.mark.slow
async def test_a_call_without_a_message_is_told_so(tmp_path: Path) -> None:
    async with grpc_house(tmp_path) as made:
        name = "/org.pytorch.serve.grpc.inference.InferenceAPIsService/Ping"
        call = made.channel.stream_unary(name)(iter(()))

        with pytest.raises(grpc.aio.AioRpcError, match="The call has no message: send one"):
            await made.settled(call)
