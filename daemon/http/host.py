"""A listener, as its connections see it."""

from collections.abc import Callable
from typing import Protocol

from daemon.core.arena import Storage
from daemon.core.clock import Clock
from daemon.http.bounds.receiving import Receiving
from daemon.http.bounds.sending import Sending
from daemon.http.deadlines import Phase
from daemon.http.exchange import Exchange
from daemon.http.limits import HttpLimits
from daemon.http.messages import Request


class Watched(Protocol):
    """A connection, as its listener sees it."""

    def __hash__(self) -> int: ...

    def expired(self, phase: Phase, now: float) -> None: ...

    def stop(self) -> None: ...

    def abort(self) -> None: ...


class Host(Protocol):
    """The interface of a listener towards its connections."""

    limits: HttpLimits
    clock: Clock
    storage: Storage | None
    receiving: Receiving
    sending: Sending
    stopping: bool
    admit: Callable[[Request], None] | None

    def arrived(self, connection: Watched) -> None: ...

    def left(self, connection: Watched) -> None: ...

    def uploads_on(self, connection: Watched) -> None: ...

    def application(self, exchange: Exchange) -> None: ...

    def access(self, request: Request, status: int, seconds: float) -> None: ...

    def peer_allowed(self, uid: int) -> bool: ...

    def enter(self, connection: Watched, phase: Phase) -> None: ...

    def leave(self, connection: Watched, /) -> None: ...

    def phase(self, connection: Watched, /) -> Phase | None: ...
