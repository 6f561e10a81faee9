"""Answers that pages of other origins may read (CORS): the operator names the origin, the methods and the headers.

Only an address without management commands sends these headers: a page in an operator's browser must never manage
models. Names and effect are TorchServe's (0.12, NettyUtils.java): each answer carries the headers that are set.
A browser asks first whether it may send a request (Fetch, section 3.2.2), without a token, and is answered without one.
"""

from tsctl.daemon.config.config import Config
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.listener import Application
from tsctl.daemon.http.messages import Response


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
    """Return an application that answers a browser's question itself, and passes any other request on."""

    def answer(exchange: Exchange) -> None:
        request = exchange.request
        if request.method == "OPTIONS" and request.header("access-control-request-method"):
            exchange.respond(Response(204))
        else:
            application(exchange)

    return answer
