"""Who may ask at a TCP address: the bearer token, and the headers by which a web page gives itself away.

    inference     the inference token or the management token, if there is an inference token;
                  never for `/ping`, `/ready` and `/live`, which load balancers ask, nor for the
                  description of the API
    management    1. no `Origin` header: browsers send one with what a page does behind its user's back
                  2. a `Host` that is ours: a page whose name was pointed at this machine brings its own
                  3. the management token, unless the operator does without

`guarded` puts a check before every route of a table, also those that are added later. The control
socket needs none of this: the kernel says who is there.
"""

import hmac
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from daemon.errors import Forbidden, MissingToken, ResourceNotFound, WrongToken
from daemon.http.exchange import Exchange
from daemon.http.messages import Request
from daemon.http.router import Route

OPEN = frozenset({"ping", "ready", "live", "api-description", ""})  # routes that need no token for predictions
_BEARER = re.compile(r"Bearer +(\S+) *", re.IGNORECASE)  # RFC 6750, section 2.1
_LOCAL = ("localhost", "127.0.0.1", "[::1]")
_PORT = re.compile(r":[0-9]+$")

Check = Callable[[Request], None]  # raises Forbidden, MissingToken or WrongToken


def bearer(request: Request) -> str:
    """The token that a request shows, or an empty string."""
    match = _BEARER.fullmatch(request.header("authorization"))
    return match[1] if match is not None else ""


def matches(shown: str, tokens: Sequence[str]) -> bool:
    """Whether a token is one of ours (empty ones are none); the time it takes says nothing about them."""
    shown_bytes = shown.encode("latin-1")  # as headers are; `compare_digest` takes no text but ASCII
    found = False
    for token in tokens:
        found |= bool(token) and hmac.compare_digest(shown_bytes, token.encode("latin-1"))
    return found


def check_token(request: Request, tokens: Sequence[str]) -> None:
    """Refuse a request without one of these tokens.

    Raises:
        MissingToken, WrongToken
    """
    shown = bearer(request)
    if not shown:
        raise MissingToken
    if not matches(shown, tokens):
        raise WrongToken


def check_origin(request: Request) -> None:
    """Refuse what a web page sends.

    Raises:
        Forbidden: it has an `Origin` header, whatever that says.
    """
    if any(name.lower() == "origin" for name, _ in request.headers):
        raise Forbidden("This address answers programs, not web pages: leave out the `Origin` header.")


@dataclass(frozen=True, slots=True)
class Hosts:
    """The values of `Host` that are ours, in lower case.

    Attributes:
        exact: with the port, if a client writes one.
        anywhere: names that go with any port, or none.
    """

    exact: frozenset[str]
    anywhere: frozenset[str]

    def __contains__(self, host: str) -> bool:
        host = host.lower()
        return host in self.exact or _PORT.sub("", host) in self.anywhere


def own_hosts(names: Collection[str], port: int, further: Collection[str], *, tls: bool = False) -> Hosts:
    """Say which hosts are ours: the listening address, this machine's own names, and what the operator allows.

    Args:
        names: of the listening address; an IPv6 address has its brackets.
        port: on which it listens; clients leave out the one that the scheme implies.
        further: a name with a port is allowed with that one, any other with each.
    """
    ours = {name.lower() for name in (*names, *_LOCAL)}
    bare = ours if port == (443 if tls else 80) else set()
    ported = {name.lower() for name in further if _PORT.search(name)}
    anywhere = {name.lower() for name in further} - ported
    return Hosts(frozenset({f"{name}:{port}" for name in ours} | bare | ported), frozenset(anywhere))


def host_of(request: Request) -> str:
    """The host that is asked, as the client wrote it; a whole URL in the request line wins (RFC 9112, 3.2.2)."""
    if not request.target.startswith("/") and "://" in request.target:
        return re.split(r"[/?#]", request.target.partition("://")[2], maxsplit=1)[0]
    return request.header("host")


def check_host(request: Request, hosts: Hosts) -> None:
    """Refuse a request that was meant for another host.

    Raises:
        Forbidden
    """
    host = host_of(request)
    if host not in hosts:
        raise Forbidden(f"This address does not answer as `{host}`: allow the name with `--allowed-host`.")


def inference_check(token: str, management_token: str) -> Check:
    """Make the check of the inference routes; an empty token asks for none."""
    if not token:
        return anybody

    def check(request: Request) -> None:
        check_token(request, (token, management_token))

    return check


def anybody(request: Request) -> None:
    """Whoever asks may."""


def management_check(token: str, hosts: Hosts) -> Check:
    """Make the check of the management routes; an empty token asks for none."""

    def check(request: Request) -> None:
        check_origin(request)
        check_host(request, hosts)
        if token:
            check_token(request, (token,))

    return check


def guarded(
    routes: Mapping[str, Route], check: Check, *, unguarded: Collection[str] = (), hide: Sequence[str] = ()
) -> dict[str, Route]:
    """Put a check before each route.

    Args:
        unguarded: the first path segments of routes that stay as they are.
        hide: tokens that a route does not get to see, as it hands the headers on to a handler.
    """
    hidden = tuple(filter(None, hide))
    if check is anybody and not hidden:
        return dict(routes)

    def guard(route: Route) -> Route:
        def checked(exchange: Exchange, path: list[str]) -> Any:
            request = exchange.request
            check(request)
            headers = request.headers
            if hidden and matches(bearer(request), hidden):
                request.headers = [header for header in headers if header[0].lower() != "authorization"]
            try:
                return route(exchange, path)
            except ResourceNotFound:
                request.headers = headers  # another table's route may be asked next, and checks for itself
                raise

        return checked

    return {segment: route if segment in unguarded else guard(route) for segment, route in routes.items()}
