"""A listener, as its connections see it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from daemon.core.arena import Storage
from daemon.core.clock import Clock
from daemon.http.bounds.receiving import Receiving
from daemon.http.bounds.sending import Sending
from daemon.http.deadlines import Phase
from daemon.http.exchange import Exchange
from daemon.http.limits import HttpLimits
from daemon.http.messages import Request

if TYPE_CHECKING:
    from daemon.http.connection import Connection


class Host(Protocol):
    """The interface of a listener towards its connections."""

    limits: HttpLimits
    clock: Clock
    storage: Storage | None
    receiving: Receiving
    sending: Sending
    stopping: bool
    admit: Callable[[Request], None] | None

    def arrived(self, connection: "Connection") -> None: ...

    def left(self, connection: "Connection") -> None: ...

    def uploads_on(self, connection: "Connection") -> None: ...

    def application(self, exchange: Exchange) -> None: ...

    def access(self, request: Request, status: int, seconds: float) -> None: ...

    def peer_allowed(self, uid: int) -> bool: ...

    def enter(self, connection: "Connection", phase: Phase) -> None: ...

    def leave(self, connection: "Connection", /) -> None: ...

    def phase(self, connection: "Connection", /) -> Phase | None: ...
