"""Limits of a connection and of the parts of its requests, and the errors for requests that exceed one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.http.forwarded_for import TrustedProxies

# Of what the event loop parses. Inference bodies go to a worker unread, except forms (inference/forms.py).
# Parsing 8 KiB of `%FF` takes 3 ms, 64 KiB 25 ms (tests/lab/benchmarks/callbacks.py). RFC 9110, section 4.1, requires
# 8 000 characters of a target; Netty reads 4 096.
MOST_TARGET: Final = 8192  # characters
MOST_SEGMENTS: Final = 256  # of the path
MOST_QUERY_FIELDS: Final = 256
MOST_JSON: Final = 32 * 1024  # bytes of a management request: a few settings. The densest takes 2.5 ms


class BodyTooLarge(DaemonError):
    """The body exceeds the limit of its kind.

    Args:
        what: the kind of document that is limited to `limit` bytes.
    """

    status = 413
    kind = "RequestEntityTooLargeException"

    def __init__(self, what: str, size: int, limit: int) -> None:
        super().__init__(f"The body has {size} bytes; the limit for {what} is {limit}.")


class TargetTooLong(DaemonError):
    """The path and query of a request are longer than `MOST_TARGET`."""

    status = 414
    kind = "BadRequestException"

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"The request target has {size} characters; the limit is {limit}.")


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


MIN_RATE = 1000.0  # bytes a second: the lowest average rate of a body


class RequestRejected(DaemonError):
    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


def head_too_large(limits: HttpLimits) -> RequestRejected:
    message = f"The headers are too large: at most {limits.max_head} bytes and {limits.max_headers} lines."
    return RequestRejected(431, "BadRequestException", message)


def body_too_large(limits: HttpLimits, size: str) -> RequestRejected:
    """Return the error for a body of this size, as in `1000 bytes or more`."""
    message = f"The body has {size}; the limit is {limits.max_body} (max_request_size)."
    return RequestRejected(413, "RequestEntityTooLargeException", message)


def slow_head(limits: HttpLimits) -> RequestRejected:
    return _too_slow(f"The headers took longer than {limits.header_timeout:g} s to arrive.")


def slow_body(limits: HttpLimits, seconds: float, count: int) -> RequestRejected | None:
    """Return the error for a body of which `count` bytes came in so many seconds; None if the rate suffices."""
    if seconds >= limits.body_timeout:
        return _too_slow(f"The body took longer than {limits.body_timeout:g} s to arrive.")
    if count < MIN_RATE * seconds:
        return _too_slow(f"The body arrived more slowly than {MIN_RATE:g} bytes a second.")
    return None


def replaced() -> RequestRejected:
    message = "The daemon was replaced before the request was complete. Send the request again."
    return RequestRejected(503, "ServiceUnavailableException", message)


def _too_slow(message: str) -> RequestRejected:
    return RequestRejected(408, "RequestTimeoutException", message)
