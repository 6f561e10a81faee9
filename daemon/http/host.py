"""A listener, as its connections see it."""

from collections.abc import Callable
from typing import Protocol

from daemon.core.arena import Storage
from daemon.core.clock import Clock
from daemon.http.bounds.receiving import ReceiveBudget
from daemon.http.bounds.sending import SendBudget
from daemon.http.deadlines import ConnectionPhase
from daemon.http.exchange import Exchange
from daemon.http.limits import HttpLimits
from daemon.http.messages import Request


class WatchedConnection(Protocol):
    """A connection, as its listener sees it."""

    def __hash__(self) -> int: ...

    def expired(self, phase: ConnectionPhase, now: float) -> None: ...

    def stop(self) -> None: ...

    def abort(self) -> None: ...


class ListenerView(Protocol):
    """The interface of a listener towards its connections."""

    limits: HttpLimits
    headers: tuple[tuple[str, str], ...]
    clock: Clock
    storage: Storage | None
    receiving: ReceiveBudget
    sending: SendBudget
    stopping: bool
    admit: Callable[[Request], None] | None

    def arrived(self, connection: WatchedConnection) -> None: ...

    def left(self, connection: WatchedConnection) -> None: ...

    def uploads_on(self, connection: WatchedConnection) -> None: ...

    def application(self, exchange: Exchange) -> None: ...

    def access(self, request: Request, status: int, seconds: float) -> None: ...

    def peer_allowed(self, uid: int) -> bool: ...

    def enter(self, connection: WatchedConnection, phase: ConnectionPhase) -> None: ...

    def leave(self, connection: WatchedConnection, /) -> None: ...

    def phase(self, connection: WatchedConnection, /) -> ConnectionPhase | None: ...
