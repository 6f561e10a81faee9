"""A listener, as its connections see it."""

from collections.abc import Callable
from typing import Protocol

from tsctl.daemon.core.arena import Storage
from tsctl.daemon.core.clock import Clock
from tsctl.daemon.http.bounds.receiving import ReceiveBudget
from tsctl.daemon.http.bounds.sending import SendBudget
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.limits import HttpLimits
from tsctl.daemon.http.messages import Request
from tsctl.daemon.http.states.connection import ConnectionPhase


class WatchedConnection(Protocol):
    """A connection, as its listener sees it."""

    def __hash__(self) -> int: ...

    def expired(self, phase: ConnectionPhase, now: float) -> None: ...

    def stop(self, over: bool = False) -> None: ...

    def abort(self) -> None: ...

    def unsent(self) -> int: ...


class ListenerView:
    """The interface of a listener towards its connections. Compiled, a base class costs less than a protocol."""

    limits: HttpLimits
    headers: tuple[tuple[str, str], ...]
    clock: Clock
    storage: Storage | None
    receiving: ReceiveBudget
    sending: SendBudget
    stopping: bool
    admit: Callable[[Request], None] | None

    application: Callable[[Exchange], None]
    access: Callable[[Request, int, float], None]
    peer_allowed: Callable[[int], bool]

    def arrived(self, connection: WatchedConnection) -> None:
        raise NotImplementedError

    def left(self, connection: WatchedConnection) -> None:
        raise NotImplementedError

    def uploads_on(self, connection: WatchedConnection) -> None:
        raise NotImplementedError

    def enter(self, connection: WatchedConnection, phase: ConnectionPhase) -> None:
        raise NotImplementedError

    def leave(self, connection: WatchedConnection) -> None:
        raise NotImplementedError

    def phase(self, connection: WatchedConnection) -> ConnectionPhase | None:
        raise NotImplementedError
