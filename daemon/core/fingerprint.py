"""Identify equal requests to one version: a digest of the handler's whole input, except the request's identity.

The digest covers, in order and with their lengths, the headers that the handler receives (the route among them, as
`explain` and `url_path`), and each parameter's name, content type and value. Headers that differ each time the same
request is sent, and headers about its transport, are left out. Any header that is not listed here counts, whatever its
purpose: a request that differs in one may be a good one.
"""

import hashlib
from collections.abc import Sequence, Set

from tsctl.daemon.core.job import Param

# Header names, in lower case.
NAMES_OF_REQUESTS = frozenset({
    "x-request-id", "x-correlation-id", "request-id", "idempotency-key",
    # Tracing: W3C, Zipkin (also `x-b3-…`), Jaeger, AWS, Google, Datadog (also `x-datadog-…`), Sentry.
    "traceparent", "tracestate", "baggage", "b3", "uber-trace-id", "x-amzn-trace-id", "x-cloud-trace-context",
    "sentry-trace",
})  # fmt: skip
_TRACING = ("x-b3-", "x-datadog-")
# The values themselves are hashed with their lengths, so the headers that announce those add nothing.
TRAVEL = frozenset({
    "date", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "expect",
    "x-request-deadline-ms",
})  # fmt: skip
_LEFT_OUT = NAMES_OF_REQUESTS | TRAVEL

AT_ONCE = 16 * 1024  # bytes of a request that is hashed on the loop: 20 µs
PARAMS_AT_ONCE = 64


def fingerprint(
    params: Sequence[Param],
    headers: Sequence[tuple[str, str]],
    left_out: Set[str] = _LEFT_OUT,
    left_out_groups: tuple[str, ...] = _TRACING,
) -> bytes:
    """Return a digest of 32 bytes (BLAKE2b, RFC 7693). Thread-safe as long as the values are not released.

    Args:
        left_out: names of headers that do not count, in lower case.
        left_out_groups: what such names begin with.
    """
    made = hashlib.blake2b(digest_size=32)
    for name, text in headers:
        lower = name.lower()
        if lower not in left_out and not lower.startswith(left_out_groups):
            made.update(_framed(lower) + _framed(text))
    made.update(b"|")
    for name, kind, value in params:
        made.update(_framed(name) + _framed(kind) + b"%d:" % len(value))
        made.update(value if isinstance(value, bytes) else value.view)
    return made.digest()


def _framed(text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    return b"%d:%b" % (len(data), data)
