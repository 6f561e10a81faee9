"""Limits of the parts of a request that the event loop parses: the target, the query, and a JSON document.

Inference bodies are not among these: they go to a worker unread, except forms (inference/forms.py).
"""

from typing import Final

from tsctl.daemon.core.errors import DaemonError

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
