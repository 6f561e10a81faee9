"""Limits of a connection's resources, and of the number of connections."""

from collections.abc import Callable
from dataclasses import dataclass

from tsctl.daemon.http.forwarded import TrustedProxies


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Sizes in bytes, times in seconds.

    Attributes:
        connections: the most that a listener may have.
        pipeline: requests that one connection may have unanswered; further requests that were read wait unparsed, and
            reading from the connection pauses.
        pages: called with `Origin` and `Host` of each request with an `Origin`, as web pages send; a raised error
            rejects the request. None for no check.
        proxies: those whose `X-Forwarded-For` names the client; None for none.
    """

    max_body: int
    header_timeout: float = 10.0
    body_timeout: float = 60.0
    keep_alive: float = 75.0
    max_head: int = 64 * 1024
    max_headers: int = 100
    pipeline: int = 32
    connections: int = 2**31
    pages: Callable[[str, str], None] | None = None
    proxies: TrustedProxies | None = None
