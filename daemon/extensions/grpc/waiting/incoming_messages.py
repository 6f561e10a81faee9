"""Messages that arrive, bounded before gRPC has built them: gRPC reads a message only on demand.

A message that nobody reads stays with its client, but for a window of 64 KiB. So messages are read in turns:

    a call has a turn                  reads; at most `AT_ONCE`, and so many that twice their bytes fit into the
                                       budget, if they are as large as the largest of late
    has read for `SLOW` seconds        leaves its turn to the next call, unless much arrives: a client that sends
                                       slowly, or nothing, delays nobody, and large messages come one after the other
    has left its turn                  reads on, and the part of its message that is there counts in the budget
    the budget is exceeded             slow calls end, the youngest of the connection that holds the most first
    has read for the timeout           ends
    waits for a stream's next request  may, but ends when it was idle for the time of a connection, and no call has a
                                       place beside those that run

gRPC does not say how much of a message has come. So while calls read slowly, and there are more than a few, the
kernel's count of each connection's bytes is compared with the messages that have come whole. What came before that is
not counted: that of `SLOW` seconds.
"""

import asyncio
import contextlib
import os
import socket
import struct
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from typing import Any, TypeVar

from tsctl.daemon.core.clock import Clock, Timer
from tsctl.daemon.core.errors import DaemonError, LimitReached, ReceivedTooSlowly
from tsctl.daemon.core.timing import duration
from tsctl.daemon.http.bounds.receiving import ReceiveBudget

CALLS = 1000  # or ten for each job that may wait for a version
SHARE = 4  # one connection may make this part of them
OPEN_CALLS = 100  # beside them: health checks
WATCHERS = 500  # of health, each a task that looks twice a second
WATCHERS_OF_ONE = 50  # on one connection


class TooManyCalls(LimitReached):
    def __init__(self, limit: int) -> None:
        super().__init__(
            f"Too many gRPC calls at once: the limit is {limit} (ten times --queue-jobs, at least {CALLS})."
            " Try again later."
        )


class TooManyWatchers(LimitReached):
    def __init__(self, limit: int, whose: str) -> None:
        super().__init__(f"Too many calls of Health/Watch: the limit is {limit} {whose}. Call Check instead.")


class StreamIdle(DaemonError):
    """A stream has not been used for a while, and its place among the calls that run at once is wanted."""

    status = 408
    kind = "RequestTimeoutException"

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"The stream was idle for {duration(seconds)} (--keep-alive), and as many gRPC calls ran as may at once"
            f" (ten times --queue-jobs, at least {CALLS}). Open another one to go on."
        )


class Activity:
    """The work of a stream while it reads: requests that are being answered, an answer that is being written.

    Args:
        crowded: whether as many calls run as may at once. Only then an idle stream ends: others may wait for hours, as
            a conversation does for its next question, and TorchServe's do.
    """

    def __init__(self, now: Callable[[], float], crowded: Callable[[], bool]) -> None:
        self.crowded = crowded
        self._now = now
        self._under_way = 0
        self._ended = now()

    def begin(self) -> None:
        self._under_way += 1

    def end(self) -> None:
        self._under_way -= 1
        self._ended = self._now()

    def idle_for(self, now: float) -> float:
        """Return the seconds for which the stream has had nothing to do."""
        return 0.0 if self._under_way else now - self._ended


class Requests:
    """The requests of a stream, as they come; `activity` is told of those that are answered while others are read."""

    def __init__(self, requests: AsyncIterator[Any], activity: Activity) -> None:
        self._requests = requests
        self.activity = activity

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._requests


def calls_at_once(queue_jobs: int) -> int:
    """Return how many calls may run at once, where so many jobs may wait for one version."""
    return max(CALLS, 10 * queue_jobs)


_RECEIVED = struct.Struct("=128xQ")  # `tcpi_bytes_received` in Linux's `struct tcp_info`


class Sockets:
    """The bytes that have arrived on gRPC's connections, as the kernel counts them: gRPC itself does not say.

    A connection is found among this process's open files by its peer's address, and by its descriptor from then on. The
    descriptor is gRPC's: nothing here closes the file, and each look checks the peer, because descriptors are reused.
    """

    def __init__(self) -> None:
        self._files: dict[str, int] = {}

    def received(self, peers: Collection[str]) -> dict[str, int]:
        """Return the bytes that each of the peers has sent since its connection began; ended ones are left out."""
        found: dict[str, int] = {}
        missing = []
        for peer in peers:
            file = self._files.get(peer)
            seen = None if file is None else _look(file)
            if seen is None or seen[0] != plain(peer):
                missing.append(peer)
            else:
                found[peer] = seen[1]
        if missing:
            wanted = {plain(peer): peer for peer in missing}
            files = {int(name) for name in os.listdir("/proc/self/fd")}
            self._files = {peer: file for peer, file in self._files.items() if file in files and peer not in missing}
            for file in sorted(files - set(self._files.values()), reverse=True):  # the youngest connection first
                seen = _look(file)
                if seen is not None and seen[0] in wanted:
                    peer = wanted.pop(seen[0])
                    self._files[peer], found[peer] = file, seen[1]
                    if not wanted:
                        break
        return found


def plain(peer: str) -> str:
    """Return an address as gRPC writes it, without the escaped brackets of IPv6."""
    return peer.replace("%5B", "").replace("%5D", "")


def _look(file: int) -> tuple[str, int] | None:
    """Return the peer of a TCP socket, and the bytes that have come from it; None for any other file."""
    try:
        opened = socket.socket(fileno=file)
    except OSError:
        return None
    try:
        if opened.family not in (socket.AF_INET, socket.AF_INET6) or opened.type != socket.SOCK_STREAM:
            return None
        host, port = opened.getpeername()[:2]
        (count,) = _RECEIVED.unpack(opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RECEIVED.size))
        return f"{host.removeprefix('::ffff:')}:{port}", count
    except (OSError, struct.error):  # it listens, or has ended; or the kernel is of before 2015
        return None
    finally:
        opened.detach()


T = TypeVar("T")
AT_ONCE = 32  # turns: with 8 for 16 calls in flight, a call of 100 bytes took a quarter more CPU
TWICE = 2  # gRPC and the daemon both hold a message for a moment
SLOW = 0.05  # seconds
MUCH = 4 * 1024 * 1024  # bytes that come in `SLOW` seconds, 80 MB/s: then calls keep their turns
BESIDE = 1024  # bytes that a message costs beside its own, or less: its call's head, and the heads of frames
_MANY, _FEW = 0.25, 1.0  # seconds between two looks while no call waits, and many or few of them read

Received = Callable[[Collection[str]], Mapping[str, int]]


class _Read:
    __slots__ = ("activity", "began", "error", "peer", "task", "turn")

    def __init__(self, peer: str, began: float, activity: Activity | None) -> None:
        self.peer = peer
        self.began = began
        self.activity = activity
        self.turn = True
        self.task = asyncio.current_task()
        self.error: DaemonError | None = None

    def end(self, error: DaemonError) -> None:
        if self.error is None and self.task is not None:
            self.error = error
            self.task.cancel()


class _Connection:
    """A connection whose bytes are measured.

    Attributes:
        whole: bytes of its messages that have come whole since the last look.
        held: bytes of those that have not.
    """

    __slots__ = ("held", "received", "whole")

    def __init__(self, received: int) -> None:
        self.received = received
        self.whole = self.held = 0

    def look(self, received: int) -> int:
        """Note the kernel's count; return by how much it has grown."""
        come, self.received = received - self.received, received
        self.held = max(0, self.held + come - self.whole)
        self.whole = 0
        return come


class Incoming:
    """Reads messages in turns.

    Args:
        most: bytes of one message.
        receiving: the budget of bodies that arrive.
        timeout: seconds that a message may take to come.
        keep_alive: seconds that a stream may be idle while calls are crowded.
        received: as `Sockets.received`.
        noted: called with the bytes of each message.
    """

    def __init__(
        self,
        clock: Clock,
        most: int,
        receiving: ReceiveBudget,
        timeout: float,
        keep_alive: float,
        received: Received | None = None,
        noted: Callable[[int], None] = lambda size: None,
    ) -> None:
        self._clock = clock
        self._receiving = receiving
        self._timeout = timeout
        self._keep_alive = keep_alive
        self._received = received or Sockets().received
        self._noted = noted
        self._few = int(max(1, min(AT_ONCE, receiving.limit // (TWICE * most))))  # read, however large they are
        self._turns = AT_ONCE
        self._largest = 1  # bytes of a message, of late
        self._reads: dict[_Read, None] = {}  # in the order of their beginnings
        self._taken = 0  # turns
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: Timer | None = None
        self._pause = 0.0  # seconds that the timer was set for
        self._measuring = False
        self._connections: dict[str, _Connection] = {}  # with calls that read, by peer, while they are measured
        self._counted = 0  # bytes in the budget

    def __repr__(self) -> str:
        return f"<Incoming {len(self._reads)} read, {len(self._waiting)} wait, {self._counted} bytes>"

    async def read(self, peer: str, read: Callable[[], Awaitable[T]], activity: Activity | None = None) -> T:
        """Return what `read` returns, in turn: a message from a peer, or its end.

        Args:
            activity: of the stream whose next message is read, which may take its time; None for the message of a call.

        Raises:
            NoRoom: the budget is exceeded, and the message has not come for a while.
            ReceivedTooSlowly: the message of a call has not come in time.
            StreamIdle: the stream was idle for too long, and others want its place.
        """
        if self._taken < self._turns:
            self._taken += 1
        else:
            await self._turn()
        this = _Read(peer, self._clock.now(), activity)
        self._reads[this] = None
        self._look_later()
        if self._measuring and peer not in self._connections:
            self._begin([peer])
        try:
            message = await read()
            if isinstance(message, bytes):
                self._note(peer, len(message))
            return message
        except asyncio.CancelledError:
            if this.error is None or this.task is None:
                raise
            this.task.uncancel()
            raise this.error from None
        finally:
            del self._reads[this]
            if this.turn:
                self._pass_on()

    def _note(self, peer: str, size: int) -> None:
        self._noted(size)
        if size > self._largest:
            self._allow(size)
        if self._measuring and peer in self._connections:
            self._connections[peer].whole += size + BESIDE

    def _allow(self, largest: int) -> None:
        """Set the number of turns for messages of so many bytes."""
        self._largest = largest
        self._turns = int(max(self._few, min(AT_ONCE, self._receiving.limit // (TWICE * largest))))
        while self._waiting and self._taken < self._turns:
            self._taken += 1
            self._pass_on()

    async def _turn(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._look_later()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                with contextlib.suppress(ValueError):  # passed over in the meantime
                    self._waiting.remove(turn)
            else:
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        """Release a turn: the call that has waited longest takes the turn over."""
        while self._waiting and self._taken <= self._turns:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._taken -= 1

    @property
    def _many(self) -> bool:
        return bool(self._waiting) or len(self._reads) > self._few

    def _look_later(self, *, much: bool = False) -> None:
        """Look after a pause, or sooner if there is more to look after than there was."""
        pause = _FEW
        if self._many:
            pause = _MANY if self._measuring and not (self._waiting or much) else SLOW
        if self._timer is not None:
            if pause >= self._pause:
                return
            self._timer.cancel()
        self._pause = pause
        self._timer = self._clock.later(pause, self._look)

    def _look(self) -> None:
        self._timer = None
        now = self._clock.now()
        slow = [each for each in self._reads if each.began <= now - SLOW]
        for each in slow:
            if each.activity is None:
                if each.began <= now - self._timeout:
                    each.end(ReceivedTooSlowly(self._timeout, "--body-timeout"))
            elif min(now - each.began, each.activity.idle_for(now)) >= self._keep_alive and each.activity.crowded():
                each.end(StreamIdle(self._keep_alive))
        much = self._measure(slow if self._many else []) >= MUCH
        if self._largest > 1 and not much:
            self._allow(self._largest // 2)
        if self._measuring and not much:
            for each in slow:
                if each.turn:
                    each.turn = False
                    self._pass_on()
        if self._receiving.used > self._receiving.limit and self._counted:
            self._make_room(slow)
        if self._reads or self._waiting:
            self._look_later(much=much)

    def _begin(self, peers: Collection[str]) -> None:
        for peer, count in self._received(peers).items():
            self._connections[peer] = _Connection(count)

    def _measure(self, slow: list[_Read]) -> int:
        """Count the bytes of incomplete messages if some are slow; return those since the last look, or `MUCH`."""
        reading = {each.peer for each in self._reads} if slow else set()
        counts = self._received(reading & self._connections.keys())
        come = sum(self._connections[peer].look(count) for peer, count in counts.items())
        self._connections = {peer: self._connections[peer] for peer in counts}
        if slow and not self._measuring:
            self._begin(reading)
            come = MUCH
        self._measuring = bool(slow)
        held = sum(each.held for each in self._connections.values())
        more, self._counted = held - self._counted, held
        if more > 0:
            self._receiving.count_bytes(more)
        elif more:
            self._receiving.free(-more)
        return come

    def _make_room(self, slow: list[_Read]) -> None:
        """End slow calls until the budget is not exceeded; the bytes of a connection are shared out to its calls."""
        excess = self._receiving.used - self._receiving.limit
        error = self._receiving.refuse()
        for peer, connection in sorted(self._connections.items(), key=lambda each: -each[1].held):
            calls = [each for each in slow if each.peer == peer]
            while calls and excess > 0 and connection.held:
                part = connection.held // len(calls)
                connection.held -= part
                excess -= part
                calls.pop().end(error)
