"""What makes two requests to one version the same: all that the handler sees, but for what names a request.

Hashed are, in their order and with their lengths, the headers that the handler finds (the route among them, as
`explain` and `url_path`), and each parameter's name, content type and value. Left out is what differs each time the
same is asked, and what says how a request travelled. A header that is not listed here counts, whatever it is for: a
request that differs in one may be a good one.
"""

import hashlib
from collections.abc import Sequence

from daemon.job import Param

# Headers, in small letters.
NAMES_OF_REQUESTS = frozenset({
    "x-request-id", "x-correlation-id", "request-id", "idempotency-key",
    # Tracing: W3C, Zipkin (also `x-b3-…`), Jaeger, AWS, Google, Datadog (also `x-datadog-…`), Sentry.
    "traceparent", "tracestate", "baggage", "b3", "uber-trace-id", "x-amzn-trace-id", "x-cloud-trace-context",
    "sentry-trace",
})  # fmt: skip
TRACING = ("x-b3-", "x-datadog-")
# The values themselves are hashed with their lengths, so what announced them adds nothing.
TRAVEL = frozenset({
    "date", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "expect",
    "x-request-deadline-ms",
})  # fmt: skip
_LEFT_OUT = NAMES_OF_REQUESTS | TRAVEL


def fingerprint(params: Sequence[Param], headers: Sequence[tuple[str, str]]) -> bytes:
    """Return a digest of 32 bytes (BLAKE2b, RFC 7693); may be called in any thread while the values are there."""
    made = hashlib.blake2b(digest_size=32)
    for name, text in headers:
        lower = name.lower()
        if lower not in _LEFT_OUT and not lower.startswith(TRACING):
            made.update(_framed(lower) + _framed(text))
    made.update(b"|")
    for name, kind, value in params:
        made.update(_framed(name) + _framed(kind) + b"%d:" % len(value))
        made.update(value if isinstance(value, bytes) else value.view)
    return made.digest()


def _framed(text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    return b"%d:%b" % (len(data), data)
