"""What must never end is begun again when it does, and an exception ends nothing that repeats."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tsctl.daemon.core.clock import FakeClock, LoopClock, Ticker
from tsctl.daemon.events.events import Events
from tsctl.daemon.events.recurring import Recurring
from tsctl.daemon.http.limits import HttpLimits
from tsctl.daemon.http.listener import Listener
from tsctl.daemon.http.states.connection import ConnectionPhase
from tsctl.daemon.lifecycle import sockets
from tsctl.daemon.lifecycle.notify import Notifier
from tsctl.daemon.lifecycle.sockets import SupervisedListener
from tsctl.daemon.lifecycle.supervision import FIRST_PAUSE, LONGEST_PAUSE, STEADY, Supervision, pause_after
from tsctl.daemon.metrics.metrics import Metrics
from tsctl.daemon.server import observation
from tsctl.daemon.server.observation import LoopWatch
from tsctl.daemon.workers.processes.reaper import Children

LIMITS = HttpLimits(1024, 1.0, 1.0, 1.0)


class Bug(Exception):
    pass


class FakeServer:
    """A server that ends when told to."""

    name = "HTTP 127.0.0.1:80"
    longest_pause = LONGEST_PAUSE

    def __init__(self) -> None:
        self.begun = 0
        self.refused = 0  # further begins fail
        self.end: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def begin(self) -> None:
        if self.refused:
            self.refused -= 1
            raise OSError("no room")
        self.begun += 1
        self.end = asyncio.get_running_loop().create_future()

    async def ended(self) -> str:
        return await self.end


class House:
    """A supervision on a fake clock, with its events."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.events = Events()
        self.metrics = Metrics()
        self.supervision = Supervision(Recurring(self.events, self.clock), self.clock, self.metrics)

    async def turn(self, seconds: float = 0.0) -> None:
        """Let everything happen that is due within so many seconds."""
        for step in (0.0, seconds):
            self.clock.advance(step)
            for _ in range(10):
                await asyncio.sleep(0)

    @property
    def told(self) -> list[str]:
        return [f"{event.kind}: {event.text}" for event in self.events.after()]

    @property
    def shown(self) -> dict[str, Any]:
        (document,) = self.supervision.document["servers"]
        assert isinstance(document, dict)
        return {name: document[name] for name in ("up", "ends", "why")}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param((0.0, 1.0), FIRST_PAUSE, id="the first end"),
        pytest.param((FIRST_PAUSE, 1.0), 2 * FIRST_PAUSE, id="another one soon"),
        pytest.param((FIRST_PAUSE, STEADY), FIRST_PAUSE, id="another one after it has run for a while"),
        pytest.param((20.0, 0.0), LONGEST_PAUSE, id="it cannot begin, again and again"),
        pytest.param((0.8, 0.0, 1.0), 1.0, id="one that clients can end"),
    ],
)
def test_the_pauses_grow_while_a_server_does_not_last(given: tuple[float, ...], expected: float) -> None:
    assert pause_after(*given) == expected


async def test_a_server_that_ends_is_told_and_begun_again() -> None:
    house, server = House(), FakeServer()
    await house.supervision.begin([server])
    await house.turn()

    server.end.set_exception(Bug("gone"))
    await house.turn()

    assert (house.supervision.serving, house.shown) == (False, {"up": False, "ends": 1, "why": "Bug: gone"})
    assert house.metrics.servers == {server.name: (False, 1)}
    assert house.told == [f"server-ended: `{server.name}` has ended: Bug: gone; it is started again in 0.1 s"]

    await house.turn(FIRST_PAUSE)

    assert (house.supervision.serving, house.shown, server.begun) == (True, house.shown | {"up": True}, 2)
    assert house.told[1:] == [f"server-restarted: `{server.name}` serves again"]
    house.supervision.close()


async def test_a_server_that_cannot_begin_again_is_tried_with_longer_pauses() -> None:
    house, server = House(), FakeServer()
    await house.supervision.begin([server])
    server.refused = 3
    await house.turn()
    server.end.set_result("it has stopped")

    for pause, begun in ((0.1, 1), (0.2, 1), (0.4, 1), (0.799, 1), (0.001, 2)):
        await house.turn(pause)
        assert (server.begun, house.supervision.serving) == (begun, begun == 2)
    house.supervision.close()


async def test_a_daemon_that_stops_begins_nothing_again() -> None:
    house, server = House(), FakeServer()
    await house.supervision.begin([server])
    await house.turn()

    house.supervision.close()
    await house.turn()
    if not server.end.done():
        server.end.set_result("closed")
    await house.turn(2 * LONGEST_PAUSE)

    assert (server.begun, house.told) == (1, [])


async def test_a_server_that_cannot_begin_at_all_stops_the_start() -> None:
    house, server = House(), FakeServer()
    server.refused = 1

    with pytest.raises(OSError, match="no room"):
        await house.supervision.begin([server])


class Listening:
    """A listener of a daemon, and its socket, of whose end it looks in each turn of the loop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, listening: socket.socket, address: Any) -> None:
        monkeypatch.setattr(sockets, "LOOK_EVERY", 0.0)
        listening.bind(address)
        listening.listen()
        listening.setblocking(False)
        self.listener = Listener(lambda exchange: None, LIMITS, LoopClock(asyncio.get_running_loop()))
        control = listening.family is socket.AF_UNIX
        self.served = SupervisedListener("HTTP", self.listener, listening, control=control)
        self.connect = asyncio.open_unix_connection if control else lambda where: asyncio.open_connection(*where)

    async def end(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Wait for a client's connection, and end all."""
        async with asyncio.timeout(10.0):
            while not self.listener.connections:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0)
            self.listener.abort()
            await reader.read()
        writer.close()
        await writer.wait_closed()
        self.served.close()


@pytest.mark.parametrize("over", ["tcp", "the control socket"])
async def test_a_listener_whose_socket_the_loop_has_closed_listens_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, over: str
) -> None:
    unix = over != "tcp"
    with socket.socket(socket.AF_UNIX if unix else socket.AF_INET) as listening:
        bench = Listening(monkeypatch, listening, str(tmp_path / "s") if unix else ("127.0.0.1", 0))
        served = bench.served
        await served.begin()
        assert served._server is not None
        served._server.close()  # as uvloop does where accept(2) fails

        async with asyncio.timeout(10.0):
            assert "closed its socket" in await served.ended()
        await served.begin()

        await bench.end(*await bench.connect(listening.getsockname()))


async def test_a_listener_that_is_held_has_not_ended_and_accepts_later_who_came_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        bench = Listening(monkeypatch, listening, str(tmp_path / "s"))
        served = bench.served
        await served.begin()

        served.hold()
        ended = asyncio.ensure_future(served.ended())
        client = await bench.connect(str(tmp_path / "s"))
        for _ in range(20):  # turns of the loop
            await asyncio.sleep(0)
        assert (bench.listener.connections, ended.done()) == (set(), False)
        await served.resume()

        ended.cancel()
        await bench.end(*client)


# What repeats on a timer. Each case begins one, whose work calls `work`, and returns how many seconds it takes.


def ticker(clock: FakeClock, work: Callable[[], Any]) -> float:
    Ticker(clock, 1.0, work).begin()  # the recent counts, autoscaling, trials
    return 1.0


def stalls(clock: FakeClock, work: Callable[[], Any]) -> float:
    LoopWatch(clock, lambda late: work()).begin()
    return observation.LOOP_LOOK_EVERY


def recurring(clock: FakeClock, work: Callable[[], Any]) -> float:
    facts = Recurring(cast(Events, SimpleNamespace(add=lambda *told, **about: told[1] == "x" or work())), clock)
    facts.note("limit", "x")
    for second in range(0, 600, 10):
        clock.later(second, lambda: facts.note("limit", "y"))
    return 60.0


def reaper(clock: FakeClock, work: Callable[[], Any]) -> float:
    children = Children(cast(Any, None), clock)
    children.reap_orphans = work  # type: ignore[method-assign]
    children._reap_later()
    return 5.0


def notifier(clock: FakeClock, work: Callable[[], Any]) -> float:
    told = Notifier("@tsctl-test-of-the-supervision", watchdog=2.0)
    assert told._socket is not None
    told._socket.close()
    told._tell = lambda **fields: None  # type: ignore[method-assign]
    clock.later(0.0, lambda: told.report_ready(clock, lambda: work() or ""))
    return 1.0


def deadlines(clock: FakeClock, work: Callable[[], Any]) -> float:
    listener = Listener(lambda exchange: None, LIMITS, clock)

    class Waiting:
        def expired(self, phase: ConnectionPhase, now: float) -> None:
            listener.enter(cast(Any, self), ConnectionPhase.IDLE)
            work()

    listener.enter(cast(Any, Waiting()), ConnectionPhase.IDLE)
    return 1.0


@pytest.mark.parametrize("begin", [ticker, stalls, recurring, reaper, notifier, deadlines])
def test_an_exception_ends_nothing_that_repeats(
    begin: Callable[[FakeClock, Callable[[], Any]], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observation, "LOOP_LATE", 0.0)
    clock, calls = FakeClock(), 0

    def work() -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise Bug

    every = begin(clock, work)
    with pytest.raises(Bug):
        clock.advance(1.5 * every)
    clock.advance(3.0 * every)

    assert calls >= 3


async def test_an_exception_that_nothing_catches_is_an_event_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    house = House()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(house.supervision.unhandled)

    def fail() -> None:
        pause_after(cast(float, "x"), 0.0)

    loop.call_soon(fail)
    loop.call_soon(fail)
    await house.turn()

    (told,) = house.told
    assert told.startswith("internal-error: TypeError: ")
    assert told.endswith("in daemon/lifecycle/supervision.py, `pause_after`")
    assert house.supervision.document["internalErrors"] == house.metrics.internal_errors == 2
    assert "Exception in callback" in caplog.text
