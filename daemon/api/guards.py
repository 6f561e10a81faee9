"""The routes of an endpoint, each behind its check.

A request with a body is checked twice: before its body is read, so that strangers cannot make the daemon
buffer bytes, and at its route, which also checks requests without a body and hides the token. A client that is known
by its key is kept to its models where the path names one, and to everything else when its prediction is submitted.
"""

import ipaddress
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tsctl.daemon.api.access_log import announced
from tsctl.daemon.api.auth import (
    OPEN,
    AllowedHosts,
    Check,
    PagesCheck,
    anybody,
    guarded,
    inference_check,
    management_check,
    own_hosts,
    pages_check,
)  # fmt: skip
from tsctl.daemon.api.inference.paths import model_named, predicts
from tsctl.daemon.config.config import Config
from tsctl.daemon.config.endpoints import Endpoint
from tsctl.daemon.config.tokens import Tokens
from tsctl.daemon.core.client import Clients
from tsctl.daemon.core.errors import Forbidden
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.listener import Application
from tsctl.daemon.http.messages import Request, Response
from tsctl.daemon.http.router import Hold, Route, Router, Unpack, join
from tsctl.daemon.tables import PROTOCOLS


@dataclass(frozen=True, slots=True)
class Guard:
    """The checks of one endpoint.

    Attributes:
        pages: of each request of a web page; None where a token keeps pages away, or all may ask.
    """

    endpoint: Endpoint
    inference: Check
    management: Check
    tokens: Tokens
    clients: Clients | None = None
    now: Callable[[], float] = time.monotonic
    pages: PagesCheck | None = None

    @property
    def asks(self) -> bool:
        """Whether there is anything to check."""
        return self.endpoint.management or bool(self.tokens.inference) or self.clients is not None

    def admit(self, request: Request) -> None:
        """Check a request whose head has arrived, and whose body has not.

        Raises:
            Forbidden: the request is not allowed here, with any token.
            MissingToken: the request has no token, and needs one.
            WrongToken: the request's token is not accepted.
            ModelNotAllowed: the client may not use the model.
            BodyTooLong: the client may not send so many bytes.
            TooManyRequests: the client's rate does not allow the request yet.
        """
        if self.endpoint.inference and (not self.endpoint.management or predicts(request.path)):
            self.inference(request)  # also for `/ping`, which ignores a body
            if request.client is not None:
                request.client.check_size(announced(request.headers) or 0)
                request.client.check_rate(self.now())
        elif self.endpoint.management:
            self.management(request)

    def router(
        self,
        inference: Mapping[str, Route],
        management: Mapping[str, Route],
        metrics: Mapping[str, Route],
        hold: Hold | None = None,
        unpack: Unpack | None = None,
    ) -> Router:
        tables: list[Mapping[str, Route]] = []
        if self.endpoint.inference:
            hide = (self.tokens.inference, self.tokens.management)
            unguarded = OPEN.union(*(each.unguarded for each in PROTOCOLS))
            tables.append(guarded(inference, self.inference, unguarded=unguarded, hide=hide))
        if self.endpoint.management:
            if self.endpoint.inference:  # whose check stands before all of `/models`, also where management asks nobody
                below = {key: route for key, route in management.items() if key.partition("/")[0] == "models"}
                management = {**management, **guarded(below, self.inference)}
            tables.append(guarded(management, self.management))
        if self.endpoint.metrics and not self.endpoint.inference:  # with predictions it is behind their check
            tables.append(metrics)
        return Router(join(*tables), hold, unpack)


def guard(
    endpoint: Endpoint,
    listening: socket.socket,
    config: Config,
    tokens: Tokens,
    clients: Clients | None = None,
    now: Callable[[], float] = time.monotonic,
) -> Guard:
    """Return the checks of an endpoint.

    Args:
        clients: those that an extension knows; None for none.
        now: the daemon's clock, seconds.
    """
    host, port = listening.getsockname()[:2]
    # An endpoint on every address of this machine is called by the machine's name.
    own = (endpoint.host, host, *([socket.gethostname()] if host in ("0.0.0.0", "::") else []))
    names = [f"[{name}]" if ":" in name else name for name in own]
    hosts = own_hosts(names, port, config.allowed_host or (), tls=endpoint.tls)
    return Guard(
        endpoint,
        within_models(inference_check(tokens.inference, tokens.management, clients)),
        management_check(tokens.management, hosts),
        tokens,
        clients,
        now,
        _pages(endpoint, host, hosts, config, asks=bool(tokens.inference) or clients is not None),
    )


def _pages(endpoint: Endpoint, host: str, hosts: AllowedHosts, config: Config, *, asks: bool) -> PagesCheck | None:
    """Return the check of web pages' requests: on the loopback interface, which pages should never reach."""
    open_to_all = not asks if endpoint.inference else endpoint.metrics
    if not open_to_all or not ipaddress.ip_address(host).is_loopback or config.cors_allowed_origin == "*":
        return None
    return pages_check(hosts, config.cors_allowed_origin or "")


def within_models(check: Check) -> Check:
    """Return a check that also keeps a known client to its models, where the path names one."""
    if check is anybody:
        return anybody

    def checked(request: Request) -> None:
        check(request)
        client, path = request.client, request.path
        if client is None:
            return
        if path[:1] == ["metrics"]:
            raise Forbidden(
                "Metrics are not for clients: scrape them with the management token, or at a metrics address."
            )
        name = model_named(path) if client.models is not None else None
        if name is not None:
            client.check_model(name)

    return checked


def cors_headers(config: Config) -> tuple[tuple[str, str], ...]:
    """Return the headers of every answer; empty unless an origin is allowed."""
    if not config.cors_allowed_origin:
        return ()
    values = (
        ("Access-Control-Allow-Origin", config.cors_allowed_origin),
        ("Access-Control-Allow-Methods", config.cors_allowed_methods),
        ("Access-Control-Allow-Headers", config.cors_allowed_headers),
    )
    return tuple((name, value) for name, value in values if value)


def with_preflight(application: Application) -> Application:
    """Return an application that answers a browser's own question (CORS), and passes any other request on.

    Only an address without management commands sends these headers: a page in an operator's browser must never manage
    models. Names and effect are TorchServe's (0.12, NettyUtils.java): each answer carries the headers that are set. A
    browser asks first whether it may send a request (Fetch, section 3.2.2), without a token, and is answered without
    one.
    """

    def answer(exchange: Exchange) -> None:
        request = exchange.request
        if request.method == "OPTIONS" and request.header("access-control-request-method"):
            exchange.respond(Response(204))
        else:
            application(exchange)

    return answer
