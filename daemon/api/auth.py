"""Authentication at TCP addresses: the bearer token, and the headers that reveal a web page.

    inference     the key of a known client, the inference token or the management token, if clients are known
                  or an inference token is configured; never for `/ping`, `/ready` and `/live`, which load
                  balancers request, nor for the description of the API
    management    1. no `Origin` header: browsers send one with the requests of a page's scripts (CSRF)
                  2. one of our own `Host` values: a page whose name was rebound to this machine sends its own name
                  3. the management token, unless the operator has turned the token off

    web pages     at a loopback address where predictions or metrics need no token: a request with an `Origin` has one
                  of our own `Host` values. For its browser, a page whose name was rebound to this machine is of the
                  same origin, so no preflight protects the address; pages of other origins: CORS (guards.py)

`guarded` puts a check before every route of a table, so that no new route lacks one. The control socket
needs no check: the kernel authenticates its clients.
"""

import hmac
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tsctl.daemon.core.client import Clients
from tsctl.daemon.core.errors import DaemonError, Forbidden, MissingToken, WrongToken
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import Request
from tsctl.daemon.http.router import Route

# Routes that need no token for predictions.
OPEN = frozenset({"ping", "ready", "live", "api-description", ""})
_BEARER = re.compile(r"Bearer +(\S+) *", re.IGNORECASE)  # RFC 6750, section 2.1
_LOCAL = ("localhost", "127.0.0.1", "[::1]")
_PORT = re.compile(r":[0-9]+$")

Check = Callable[[Request], None]  # raises Forbidden, MissingToken or WrongToken
PagesCheck = Callable[[str, str], None]  # of `Origin` and `Host`; raises Forbidden


def bearer(request: Request) -> str:
    match = _BEARER.fullmatch(request.header("authorization"))
    return match[1] if match is not None else ""


def matches(shown: str, tokens: Sequence[str]) -> bool:
    """Return whether a token is one of `tokens`, in constant time; empty tokens match nothing."""
    # The encoding of HTTP's headers; those of gRPC are UTF-8. `compare_digest` accepts only ASCII text.
    shown_bytes = shown.encode("latin-1", "backslashreplace")
    found = False
    for token in tokens:
        found |= bool(token) and hmac.compare_digest(shown_bytes, token.encode("latin-1"))
    return found


def check_token(request: Request, tokens: Sequence[str]) -> None:
    """Reject a request without one of these tokens.

    Raises:
        MissingToken: the request has no token.
        WrongToken: its token is none of these.
    """
    shown = bearer(request)
    if not shown:
        raise MissingToken
    if not matches(shown, tokens):
        raise WrongToken


def check_origin(request: Request) -> None:
    """Reject the request of a web page.

    Raises:
        Forbidden: the request has an `Origin` header, of any value.
    """
    if any(name.lower() == "origin" for name, _ in request.headers):
        raise Forbidden("Requests of web pages are rejected: remove the `Origin` header.")


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """The accepted values of `Host`, in lower case.

    Attributes:
        exact: values compared as a whole, with their port where clients send one.
        anywhere: names accepted with any port, or without.
    """

    exact: frozenset[str]
    anywhere: frozenset[str]

    def __contains__(self, host: str) -> bool:
        host = host.lower()
        return host in self.exact or _PORT.sub("", host) in self.anywhere


def own_hosts(names: Collection[str], port: int, further: Collection[str], *, tls: bool = False) -> AllowedHosts:
    """Return the accepted hosts: the listening address, this machine's own names, and the operator's allowed names.

    Args:
        names: of the listening address; IPv6 addresses in brackets.
        port: of the listening address; clients omit the default port of the scheme.
        further: allowed names; a name with a port is accepted with that port only, a name without with any.
    """
    ours = {name.lower() for name in (*names, *_LOCAL)}
    bare = ours if port == (443 if tls else 80) else set()
    ported = {name.lower() for name in further if _PORT.search(name)}
    anywhere = {name.lower() for name in further} - ported
    return AllowedHosts(frozenset({f"{name}:{port}" for name in ours} | bare | ported), frozenset(anywhere))


def host_of(request: Request) -> str:
    """Return the requested host as the client wrote it; an absolute URL in the request line wins (RFC 9112, 3.2.2)."""
    if not request.target.startswith("/") and "://" in request.target:
        return re.split(r"[/?#]", request.target.partition("://")[2], maxsplit=1)[0]
    return request.header("host")


def check_host(request: Request, hosts: AllowedHosts) -> None:
    """Reject a request for another host.

    Raises:
        Forbidden: the requested host is not in `hosts`.
    """
    host = host_of(request)
    if host not in hosts:
        raise Forbidden(f"Host `{host}` is not allowed at this address: allow the name with `--allowed-host`.")


def pages_check(hosts: AllowedHosts, origin: str) -> PagesCheck:
    """Return the check of web pages' requests at an address that needs no token.

    Args:
        origin: of the pages that may ask by any host, as a proxy may pass their requests on; empty for none.
    """

    def check(theirs: str, host: str) -> None:
        if host not in hosts and theirs != origin:
            raise Forbidden(
                f"Host `{host}` is not allowed at this address for web pages (the request has the `Origin` `{theirs}`):"
                " allow the name with `--allowed-host`."
            )

    return check


def inference_check(token: str, management_token: str, clients: Clients | None = None) -> Check:
    """Return the check of the inference routes, which notes a known client at the request.

    Args:
        token: empty for none; without clients, the check is then off.
        clients: those that an extension knows; None for none.
    """
    if not token and clients is None:
        return anybody

    def check(request: Request) -> None:
        request.client = None if clients is None else clients.find(bearer(request))
        if request.client is None:
            check_token(request, (token, management_token))

    return check


def anybody(request: Request) -> None:
    """Accept every request."""


def management_check(token: str, hosts: AllowedHosts) -> Check:
    """Return the check of the management routes; an empty token turns only the token check off."""

    def check(request: Request) -> None:
        check_origin(request)
        check_host(request, hosts)
        if token:
            check_token(request, (token,))

    return check


def guarded(
    routes: Mapping[str, Route], check: Check, *, unguarded: Collection[str] = (), hide: Sequence[str] = ()
) -> dict[str, Route]:
    """Return the routes with a check before each.

    Args:
        unguarded: the first path segments of routes without the check; or the first two, as in `v9/health`.
        hide: tokens removed from the request, because routes pass the headers on to handlers; so are clients' keys.
    """
    hidden = tuple(filter(None, hide))
    if check is anybody and not hidden:
        return dict(routes)

    def guard(segment: str, route: Route) -> Route:
        open_below = {each.partition("/")[2] for each in unguarded if each.startswith(f"{segment}/")}

        def checked(exchange: Exchange, path: list[str]) -> Any:
            if open_below and path and path[0] in open_below:
                return route(exchange, path)
            request = exchange.request
            check(request)
            headers = request.headers
            if request.client is not None or (hidden and matches(bearer(request), hidden)):
                request.headers = [header for header in headers if header[0].lower() != "authorization"]
            try:
                return route(exchange, path)
            except DaemonError:
                # Another table's route may be tried next, with a check of its own, or this one once more, and checked
                # again, when the model is registered and loaded (inference/held_requests.py).
                request.headers = headers
                raise

        return checked

    return {segment: route if segment in unguarded else guard(segment, route) for segment, route in routes.items()}
