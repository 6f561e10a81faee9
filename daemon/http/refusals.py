"""Requests that are answered before they are complete, and with what."""

from daemon.errors import DaemonError
from daemon.http.limits import HttpLimits


class Refused(DaemonError):
    """The request is answered before it is complete."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


def head_too_large(limits: HttpLimits) -> Refused:
    message = f"The headers are too large: at most {limits.max_head} bytes and {limits.max_headers} lines."
    return Refused(431, "BadRequestException", message)


def body_too_large(limits: HttpLimits, size: str) -> Refused:
    """Return the refusal of a body of this size, as in `1000 bytes or more`."""
    message = f"The body has {size}, and the limit is {limits.max_body} (max_request_size)."
    return Refused(413, "RequestEntityTooLargeException", message)


def too_slow(message: str) -> Refused:
    return Refused(408, "RequestTimeoutException", message)
