"""Choose the handler of a request by the path's first segment, or by the first and the third: `models/*/route`.

A route is a plain function of the exchange and the path's further segments. Routes may answer at once,
keep the exchange for later, or return a coroutine that answers it.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from enum import Enum, auto
from typing import Any, Final

from tsctl.daemon.core.errors import DaemonError, ResourceNotFound
from tsctl.daemon.http.exchange import Exchange

Route = Callable[[Exchange, list[str]], Coroutine[Any, Any, None] | None]
ELSEWHERE: Final = "*"  # no request's first segment is routed to it
Hold = Callable[[Exchange, DaemonError, Callable[[Exchange], None]], bool]
Unpack = Callable[[Exchange, Callable[[Exchange], None]], Coroutine[Any, Any, None] | None]

_log = logging.getLogger("tsctl.daemon.http")


class Audience(Enum):
    """The clients that may ask for a route."""

    CLIENTS = auto()  # of the inference addresses, and of the control socket
    SCRAPERS = auto()  # of the metrics addresses
    MANAGERS = auto()  # of the management addresses, and of the control socket
    OPERATORS = auto()  # of the control socket alone


def join(*tables: Mapping[str, Route]) -> dict[str, Route]:
    """Join several tables into one.

    Where two have a route for the same segment, the first that knows the path answers: a route rejects a path by
    raising ResourceNotFound at once, not from a coroutine.
    """
    joined: dict[str, Route] = {}
    for table in tables:
        for segment, route in table.items():
            joined[segment] = _either(joined[segment], route) if segment in joined else route
    return joined


def resolved(table: Mapping[str, Route]) -> dict[str, Route]:
    """Return a table by first segments alone: `models/*/route` is asked first, then `models/*`, then `models`."""
    routes, below = dict[str, Route](), dict[str, dict[str, Route]]()
    for key, route in table.items():
        first, named, third = key.partition("/*")
        if named:
            below.setdefault(first, {})[third[1:]] = route
        else:
            routes[first] = route
    for first, by_third in below.items():
        routes[first] = _by_third(by_third, routes.get(first, _nowhere))
    return routes


def _by_third(routes: Mapping[str, Route], other: Route) -> Route:
    named = _either(routes[""], other) if "" in routes else other
    found = {third: _either(route, named) for third, route in routes.items() if third}

    def route(exchange: Any, path: list[str]) -> Coroutine[Any, Any, None] | None:
        return (found.get(path[1], named) if len(path) > 1 else named if path else other)(exchange, path)

    return route


def _nowhere(exchange: Any, path: list[str]) -> None:
    del exchange, path
    raise ResourceNotFound


def _either(first: Route, second: Route) -> Route:
    # Any: gRPC's management has an exchange of its own, and this is compiled.
    def route(exchange: Any, path: list[str]) -> Coroutine[Any, Any, None] | None:
        try:
            return first(exchange, path)
        except ResourceNotFound as refused:
            try:
                return second(exchange, path)
            except ResourceNotFound as error:
                raise refused if type(error) is ResourceNotFound else error from None  # the one that tells more

    return route


class Router:
    """An application made of routes.

    Args:
        routes: first path segment → route, or as `resolved` takes them; the empty segment is `/` itself. `ELSEWHERE`
            takes what no other does, with all segments.
        hold: called with an exchange that a route refused at once, the error, and this router; returns whether it takes
            the exchange, to answer it or route it again later.
        unpack: called with an exchange whose body is in a coding, and this router, which it calls with the body
            unpacked; None where no body is.
    """

    def __init__(self, routes: Mapping[str, Route], hold: Hold | None = None, unpack: Unpack | None = None) -> None:
        self._hold = hold
        self._unpack = unpack
        self._routes = resolved(routes)
        self._tasks: set[asyncio.Task[None]] = set()  # the loop itself keeps only weak references

    def __call__(self, exchange: Exchange) -> None:
        try:
            request = exchange.request
            segments = request.path or [""]
            route = self._routes.get(segments[0])
            if request.coding is not None and self._unpack is not None:
                work = self._unpack(exchange, self)
            elif route is not None and segments[0] != ELSEWHERE:
                work = route(exchange, segments[1:])
            elif ELSEWHERE in self._routes:
                work = self._routes[ELSEWHERE](exchange, segments)
            else:
                raise ResourceNotFound
        except Exception as error:  # noqa: BLE001 - the border: every request is answered
            held = self._hold is not None and isinstance(error, DaemonError) and self._hold(exchange, error, self)
            if not held:
                _fail(exchange, error)
            return
        if work is not None:
            task = asyncio.get_running_loop().create_task(_guard(exchange, work))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


async def _guard(exchange: Exchange, work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Exception as error:  # noqa: BLE001 - the border
        _fail(exchange, error)


def _fail(exchange: Exchange, error: Exception) -> None:
    if not isinstance(error, DaemonError):
        _log.error("bug while answering %r", exchange, exc_info=error)
        error = DaemonError(f"The daemon failed: {type(error).__name__}: {error}. Its log has the traceback.")
    exchange.fail(error)
