"""The most requests in a batch of a version whose batches did not fit into memory; the time is an argument.

    no cap ──a batch does not fit──▶ its half ──`wait` later──▶ twice as many ──…──▶ the batch size ──`wait`──▶ no cap
                                        ▲                           │                     │
                                        └──────── does not fit: `wait` is doubled ────────┘

What fits depends on the requests, and on what else uses the GPU; so more are tried for ever, and less often each time
that this fails.
"""

from dataclasses import dataclass, replace

FIRST = 60.0  # seconds until more requests are tried
LONGEST = 3600.0  # seconds; each try costs one batch, whose halves run again


@dataclass(frozen=True, slots=True)
class Cap:
    """How many requests a batch may have.

    Attributes:
        most: that many, at least 1; at most the batch size.
        too_large: the batch that did not fit, in requests.
        wait: seconds from a change to the next one.
        due: when more are tried, or the cap is forgotten; on the clock of `now`.
        raised: more are tried since a batch did not fit.
    """

    most: int
    too_large: int
    wait: float
    due: float
    raised: bool = False


def lowered(cap: Cap | None, rows: int, now: float) -> Cap:
    """Return the cap after so many requests, at least 2, did not fit together: half of them, rounded up.

    The same cap if that is no less: the batch was sent before it, or another worker has told of it already.
    """
    most = (rows + 1) // 2
    if cap is not None and most >= cap.most:
        return cap
    wait = FIRST if cap is None else cap.wait
    if cap is not None and cap.raised:
        wait = min(LONGEST, 2 * wait)
    return Cap(most, rows, wait, now + wait)


def raised(cap: Cap, batch_size: int, now: float) -> Cap | None:
    """Return the cap after it is due: twice as many, up to the batch size; None if these have been tried for long."""
    if cap.most >= batch_size:
        return None
    return replace(cap, most=min(batch_size, 2 * cap.most), due=now + cap.wait, raised=True)
