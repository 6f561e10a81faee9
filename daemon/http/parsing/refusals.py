"""Errors for requests that are rejected before they are complete."""

from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.http.limits import HttpLimits

MIN_RATE = 1000.0  # bytes a second: the lowest average rate of a body


class RequestRejected(DaemonError):
    """An incomplete request is rejected."""

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
