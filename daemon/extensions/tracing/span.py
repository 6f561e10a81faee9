"""A span, as plain values: made on the event loop, and converted for a collector in another thread."""

from collections.abc import Mapping, Sequence

import msgspec

from tsctl.daemon.extensions.tracing.context import TraceContext

SERVER, INTERNAL = "server", "internal"


class Span(msgspec.Struct, frozen=True, gc=False):
    """One span; thousands may wait, so the garbage collector does not look at them.

    Attributes:
        context: its own place in a trace.
        parent: the id of the span that it is a part of; empty for none.
        kind: `SERVER` for the daemon's answer to a client, `INTERNAL` for its parts.
        began, ended: seconds since the epoch.
        error: why it failed; None if it did not.
        links: other spans that it belongs to.
        events: names and times of what happened meanwhile, seconds since the epoch.
        foreign: the parent is another process's.
    """

    name: str
    context: TraceContext
    parent: str
    kind: str
    began: float
    ended: float
    attributes: Mapping[str, str | int | float | bool]
    error: str | None = None
    links: Sequence[TraceContext] = ()
    events: Sequence[tuple[str, float]] = ()
    foreign: bool = False
