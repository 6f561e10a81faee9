"""Trace contexts: the header `traceparent` of W3C Trace Context, level 2."""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

TRACEPARENT: Final = "traceparent"
TRACESTATE = "tracestate"
MOST_STATE = 512  # characters of `tracestate` that have to be kept; longer ones are not
SAMPLED, RANDOM = 1, 2  # flags: the caller records the trace; the trace id is random

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


class TraceContext(msgspec.Struct, frozen=True, gc=False):  # the garbage collector need not look at it
    """A place in a trace.

    Attributes:
        trace_id, span_id: 32 and 16 hexadecimal digits, in lower case, not all of them 0.
        flags: those of `SAMPLED` and `RANDOM`; others are dropped.
        state: the value of `tracestate`, for the tracing system; empty for none.
    """

    trace_id: str
    span_id: str
    flags: int = SAMPLED
    state: str = ""

    @property
    def sampled(self) -> bool:
        """Whether the caller records the trace."""
        return bool(self.flags & SAMPLED)

    def beside(self, span_id: str) -> "TraceContext":
        """Return the place of another span of the same trace."""
        return TraceContext(self.trace_id, span_id, self.flags, self.state)

    @property
    def header(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{self.flags:02x}"


def parse_traceparent(text: str) -> TraceContext | None:
    """Parse the value of a header; return None for an invalid one.

    A later version than `00` is read as that, and may have more fields. Version `ff` is invalid.
    """
    match = _TRACEPARENT.fullmatch(text)
    if match is None:
        return None
    version, trace_id, span_id, flags, more = match.groups()
    if version == "ff" or (version == "00" and more is not None):
        return None
    if not (trace_id.strip("0") and span_id.strip("0")):
        return None
    return TraceContext(trace_id, span_id, int(flags, 16) & (SAMPLED | RANDOM))


def names_caller(headers: Sequence[tuple[str, str]]) -> bool:
    """Return whether a request has a `traceparent`, which may be invalid."""
    for header in headers:  # noqa: SIM110 - compiled, a loop costs a fraction of a generator
        if len(header[0]) == len(TRACEPARENT) and header[0].lower() == TRACEPARENT:
            return True
    return False


def caller_of(headers: Sequence[tuple[str, str]]) -> TraceContext | None:
    """Return the place in a trace that a request's headers name; None without, or if it is invalid or repeated."""
    parents = [value for name, value in headers if len(name) == 11 and name.lower() == TRACEPARENT]
    if len(parents) != 1:
        return None
    found = parse_traceparent(parents[0])
    if found is None:
        return None
    state = ",".join([value for name, value in headers if len(name) == 10 and name.lower() == TRACESTATE])
    return TraceContext(found.trace_id, found.span_id, found.flags, state) if 0 < len(state) <= MOST_STATE else found


def with_context(headers: Sequence[tuple[str, str]], context: TraceContext) -> list[tuple[str, str]]:
    """Return a request's headers with this place in a trace, in place of any other."""
    kept = [header for header in headers if header[0].lower() not in (TRACEPARENT, TRACESTATE)]
    kept.append((TRACEPARENT, context.header))
    if context.state:
        kept.append((TRACESTATE, context.state))
    return kept
