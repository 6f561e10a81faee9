"""The state shared by all connections of one listening socket: the application, the limits, the timer."""

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from typing import cast

from tsctl.daemon.core.arena import Storage
from tsctl.daemon.core.clock import Clock, Timer
from tsctl.daemon.http.bounds.receiving import PATIENCE, ReceiveBudget
from tsctl.daemon.http.bounds.rejection import RejectingProtocol
from tsctl.daemon.http.bounds.sending import SendBudget
from tsctl.daemon.http.connection import Connection
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.host import ListenerView, WatchedConnection
from tsctl.daemon.http.limits import HttpLimits
from tsctl.daemon.http.messages import Request
from tsctl.daemon.http.states.connection import ConnectionDeadlines, ConnectionPhase, Farewell

RATE_FROM = 10.0  # seconds after which a body must have come at MIN_RATE on average
RATE_EVERY = 1.0
LINGER = 2.0  # seconds without a byte from a rejected uploader, after which its connection is closed
LINGERING = 128  # rejected uploaders whose input is discarded at a time
TELL_EVERY = 60.0  # seconds between two warnings about too many connections
IDLE_LEAST = 1.0  # seconds after which an idle connection makes room for another: busy clients keep theirs
_HANDSHAKE_LEAST = 1.0  # seconds that a TLS handshake may take, however short the header timeout is


def handshake_time(limits: HttpLimits) -> float:
    """Return how many seconds a TLS handshake may take."""
    return max(limits.header_timeout, _HANDSHAKE_LEAST)


_log = logging.getLogger("tsctl.daemon.http")

Application = Callable[[Exchange], None]  # answers an exchange, now or later
Access = Callable[[Request, int, float], None]  # request, status, seconds from receipt to answer


class Listener(ListenerView):
    """Creates connections for `loop.create_server`, and enforces their deadlines.

    Args:
        peer_allowed: whether a process of this user may connect to a Unix socket.
        admit: called with a request whose head is known; raises a DaemonError to reject the request without
            reading its body.
        receiving: the budget for bodies, shared with other listeners; None for one without a limit.
        sending: the budget for answers that wait for their clients, likewise.
        full: called with a sentence, at most once a minute, when connections are rejected, or closed for others.
        headers: of every answer, besides its own.

    Attributes:
        stopping: each connection closes after the last answer it owes.
    """

    def __init__(
        self,
        application: Application,
        limits: HttpLimits,
        clock: Clock,
        access: Access = lambda request, status, seconds: None,
        peer_allowed: Callable[[int], bool] = lambda uid: True,
        storage: Storage | None = None,
        admit: Callable[[Request], None] | None = None,
        receiving: ReceiveBudget | None = None,
        sending: SendBudget | None = None,
        full: Callable[[str], None] = _log.warning,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.application = application
        self.limits = limits
        self.clock = clock
        self.access = access
        self.peer_allowed = peer_allowed
        self.storage = storage
        self.admit = admit
        self.receiving = receiving or ReceiveBudget()
        self.sending = sending or SendBudget()
        self.stopping = False
        self.headers = tuple(headers)
        self._full = full
        self._told_full = -math.inf
        self.connections: set[WatchedConnection] = set()
        self._uploading: dict[WatchedConnection, None] = {}  # rejected, and still sending; the first one first
        self._accepted = self._arrived = 0
        self._accepted_at = 0.0  # the latest
        self._deadlines: ConnectionDeadlines[WatchedConnection] = ConnectionDeadlines({
            ConnectionPhase.IDLE: limits.keep_alive,
            ConnectionPhase.HEADERS: limits.header_timeout,
            ConnectionPhase.BODY: min(RATE_FROM, limits.body_timeout),
            ConnectionPhase.BODY_RATE: RATE_EVERY,
            ConnectionPhase.ROOM: PATIENCE,
            ConnectionPhase.STUCK: limits.body_timeout,
            ConnectionPhase.LINGER: LINGER,
        })  # fmt: skip
        self._farewell: Farewell[WatchedConnection] | None = None  # once another daemon has taken our place
        self._timer: Timer | None = None
        self._timer_at = 0.0

    def __repr__(self) -> str:
        return f"<Listener {len(self.connections)} connections{' stopping' if self.stopping else ''}>"

    def connect(self) -> Connection | RejectingProtocol:
        """Return the protocol for an accepted connection (a factory); over TLS, the handshake is yet to come."""
        most, now = self.limits.connections, self.clock.now()
        full = len(self.connections) >= most
        closed = full and self._close_idle(now)
        if full and now - self._told_full >= TELL_EVERY:
            self._told_full = now
            how = "idle ones are closed for further ones" if closed else "rejecting further ones with 503"
            self._full(f"{most} connections are open: {how}")
        if full and not closed:
            return RejectingProtocol(most)
        self._accepted += 1
        self._accepted_at = now
        return Connection(self)

    def _close_idle(self, now: float) -> bool:
        """Close the connection that has been idle for longest; return whether there is one.

        One whose client has yet to take its answer could not be closed at once, and so makes no room.
        """
        while (idle := self._deadlines.take_first(ConnectionPhase.IDLE, now - IDLE_LEAST)) is not None:
            idle.expired(ConnectionPhase.IDLE, now)
            if self.phase(idle) is None:
                return True
        return False

    def accept(self) -> asyncio.BaseProtocol:
        """As `connect`, for the event loop, which asks what a protocol can do and not what it inherits."""
        return cast(asyncio.BaseProtocol, self.connect())

    def arrived(self, connection: WatchedConnection) -> None:
        self._arrived += 1
        self.connections.add(connection)

    def left(self, connection: WatchedConnection) -> None:
        self.connections.discard(connection)
        self._uploading.pop(connection, None)

    def uploads_on(self, connection: WatchedConnection) -> None:
        """Let a rejected client send on, to read the answer; beyond `LINGERING`, abort the first such connection."""
        uploading = self._uploading
        uploading[connection] = None
        if len(uploading) > LINGERING:
            first = next(iter(uploading))
            del uploading[first]
            first.abort()

    @property
    def busy(self) -> bool:
        """Whether a client is or may soon be connected: failed TLS handshakes go unreported, so each has its time."""
        if self.connections:
            return True
        return self._accepted > self._arrived and self.clock.now() < self._accepted_at + handshake_time(self.limits)

    def enter(self, connection: WatchedConnection, phase: ConnectionPhase) -> None:
        """Start a deadline for a connection, in place of the previous one."""
        due = self._deadlines.enter(connection, phase, self.clock.now())
        if self._timer is None:
            self._arm(self.clock.now())
        elif due < self._timer_at:
            self._timer.cancel()
            self._arm(self.clock.now())

    def leave(self, connection: WatchedConnection) -> None:
        self._deadlines.leave(connection)

    def phase(self, connection: WatchedConnection) -> ConnectionPhase | None:
        return self._deadlines.phase(connection)

    def wind_down(self, grace: float) -> None:
        """Answer each connection's next request as its last.

        Idle connections stay: closing one in the moment in which its client sends would reset it. An answer in progress
        may already have announced keep-alive, so its connection stays, too.

        Args:
            grace: seconds until `let_go` is told that they are over.
        """
        self.stopping = True
        self._farewell = Farewell(grace, self.clock.now())

    def let_go(self, *, over: bool) -> None:
        """Note which clients do not take their answers; call this again and again after `wind_down`.

        Args:
            over: the grace is over: close idle connections, refuse incomplete requests, and leave those clients. What
                runs is still answered.
        """
        assert self._farewell is not None
        counts = {each: each.unsent() for each in self.connections}
        unsent = {each: count for each, count in counts.items() if count >= 0}
        overdue = self._farewell.overdue(unsent, self.clock.now())
        if not over:
            return
        self._accepted = self._arrived  # no handshake is waited for
        for connection in overdue:
            connection.abort()
        self.stop(over=True)

    def stop(self, over: bool = False) -> None:
        """Close idle connections; the others close after their last answer. If `over`, refuse incomplete requests."""
        self.stopping = True
        for connection in list(self.connections):
            connection.stop(over)

    def abort(self) -> None:
        """Close every connection now."""
        for connection in list(self.connections):
            connection.abort()
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self, now: float) -> None:
        due = self._deadlines.next()
        if due is None:
            self._timer = None
            return
        self._timer_at = due
        self._timer = self.clock.later(max(0.0, due - now), self._look)

    def _look(self) -> None:
        now = self.clock.now()
        try:
            for connection, phase in self._deadlines.expired(now):
                connection.expired(phase, now)
        finally:  # else no deadline of any connection would ever pass again
            self._arm(now)
