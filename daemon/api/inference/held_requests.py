"""Requests for models that are about to be registered (of `--models` or the last run, while they are unpacked), and for
versions whose first worker is loading: how their bodies are read is not known yet.

Such a request is held, and answered as if it had come when its model was registered and loaded, or could not be. There
are as many as may wait in a queue; a deadline ends the waiting, and so does a client that leaves.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial

from tsctl.daemon.api.inference.paths import facts_of
from tsctl.daemon.core.clock import Clock, Timer
from tsctl.daemon.core.errors import (
    BadRequest,
    DaemonError,
    Loading,
    LoadingFirst,
    ModelNotFound,
    RequestExpired,
    Stopping,
    VersionNotFound,
)
from tsctl.daemon.http.deadline_header import read_budget
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.models.admission import FirstLoads
from tsctl.daemon.models.registry import Registry

READY = "ready"  # routes that tell about a model: their answer is that it is not ready


class HeldRequests:
    """The held requests of all addresses.

    Args:
        most: requests that may be held.
        most_bytes: bytes of their bodies.
    """

    def __init__(self, registry: Registry, clock: Clock, most: int, most_bytes: int) -> None:
        self._registry = registry
        self._clock = clock
        self._most = most
        self._most_bytes = most_bytes
        self._waiting: dict[Exchange, tuple[Callable[[Exchange], None], Timer | None]] = {}
        self._bytes = 0
        self._looking = False  # soon
        self._loads = FirstLoads(self._look_soon)
        registry.waiters.append(self._look_again)

    def __repr__(self) -> str:
        return f"<HeldRequests {len(self._waiting)} requests, {self._bytes} bytes>"

    def hold(self, exchange: Exchange, error: DaemonError, again: Callable[[Exchange], None]) -> bool:
        """Hold a request that failed because its model is not registered or loaded yet; return False for any other.

        Args:
            again: routes the request once more.
        """
        most = math.inf  # seconds from the request's beginning
        refusal: DaemonError
        if isinstance(error, LoadingFirst):
            refusal, doing, most, name = error, "loading", error.most, error.name
        elif isinstance(error, (ModelNotFound, VersionNotFound)) and self._registry.expects(error.name):
            refusal, doing, name = _loading(error.name), "being registered", error.name
        else:
            return False
        request = exchange.request
        if not _waits(request.path) or len(self._waiting) >= self._most:
            exchange.fail(refusal)
            return True
        if self._bytes + len(request.body) > self._most_bytes:
            exchange.fail(refusal)
            return True
        timer = None
        if request.budget is not None:
            try:
                most = min(most, read_budget(request.budget))
            except BadRequest as invalid:
                exchange.fail(invalid)
                return True
        if most < math.inf:
            left = request.began + most - self._clock.now()
            timer = self._clock.later(max(0.0, left), partial(self._expire, exchange, name, doing))
        if isinstance(error, LoadingFirst):
            self._loads.listen(error)
        self._bytes += len(request.body)
        self._waiting[exchange] = again, timer
        exchange.on_leave = partial(self._leave, exchange)
        return True

    def close(self) -> None:
        """Refuse those that are held: the daemon is being stopped."""
        for exchange in self._still_waiting():
            self._let_go(exchange)
            exchange.fail(Stopping("The daemon is being stopped. Send the request again."))

    def _look_soon(self) -> None:
        if not self._looking:
            self._looking = True
            self._clock.soon(self._look_again)  # whoever calls is changing its workers

    def _look_again(self) -> None:
        self._looking = False
        self._loads.let_go()
        for exchange in self._still_waiting():
            again = self._let_go(exchange)
            again(exchange)

    def _still_waiting(self) -> Iterator[Exchange]:
        """Yield those that are held now, but for those whose clients leave as others are answered."""
        for exchange in list(self._waiting):
            if exchange in self._waiting:
                yield exchange

    def _let_go(self, exchange: Exchange) -> Callable[[Exchange], None]:
        again, timer = self._waiting.pop(exchange)
        self._bytes -= len(exchange.request.body)
        exchange.on_leave = None
        if timer is not None:
            timer.cancel()
        return again

    def _leave(self, exchange: Exchange, gone: bool) -> bool:  # noqa: ARG002 - nobody waits, either way
        self._let_go(exchange)
        return False

    def _expire(self, exchange: Exchange, name: str, doing: str) -> None:
        self._let_go(exchange)
        exchange.fail(RequestExpired(f'The deadline passed while model "{name}" was {doing}.'))


def _waits(path: list[str]) -> bool:
    facts = facts_of(path)
    return path[:1] != [READY] and (facts is None or facts.runs)


def _loading(name: str) -> Loading:
    return Loading(f'Model "{name}" is being registered. Try again later.')
