"""A gRPC call that is answered by a route of HTTP: one implementation, one set of sentences."""

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any, cast
from urllib.parse import quote, urlencode

from tsctl.daemon.core.errors import ResourceNotFound
from tsctl.daemon.core.job import Caller
from tsctl.daemon.extensions.grpc.codes import code_of_status
from tsctl.daemon.extensions.grpc.heads import CallHead
from tsctl.daemon.extensions.grpc.prediction import CallFailed
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import Request, Response
from tsctl.daemon.http.router import Route

Routes = Mapping[str, Route]
Query = Mapping[str, str | int | bool]


class RelayedExchange:
    """A request that did not come over HTTP, and its answer, for routes that answer at once and whole.

    Attributes:
        response: None until the route has answered.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.response: Response | None = None
        self.on_leave: Callable[[bool], bool] | None = None
        self.caller = Caller()
        self.done = False

    def respond(self, response: Response) -> None:
        if not self.done:
            self.response, self.done = response, True


async def relay(routes: Routes, method: str, path: list[str], query: Query, head: CallHead, body: bytes = b"") -> Any:
    """Return the JSON document with which a route answers; the first segment of the path names the route.

    Args:
        query: parameters; those that are empty, 0 or False are left out, which proto3 cannot tell from absent ones.

    Raises:
        DaemonError: the route rejects the request.
        CallFailed: the route answers with an error.
    """
    said = {name: str(value).lower() if value is True else str(value) for name, value in query.items() if value}
    target = f"/{'/'.join(quote(each, safe='') for each in path)}{'?' if said else ''}{urlencode(said)}"
    exchange = RelayedExchange(Request(method, target, [], body, began=head.began, received=head.received, id=head.id))
    if path[0] not in routes:
        raise ResourceNotFound
    answered = routes[path[0]](cast(Exchange, exchange), path[1:])
    if inspect.isawaitable(answered):
        await answered
    response = exchange.response
    assert response is not None, target
    if response.status >= 400:
        raise CallFailed(code_of_status(response.status), bytes(response.body).decode(), response.status)
    return json.loads(bytes(response.body))
