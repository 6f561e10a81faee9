"""The input of `python -P -m daemon.tools.tune`: a JSON line on stdin, then the body of the request to measure with.

The output is JSON lines, each with a `stage`:

    loading      workers, threads
    measuring    done, total (steps); workers, threads, busy, size
    measured     workers, threads, fits and curves: a document of batch times
    note         text: a caveat on the figures
    way          latency, cost: seconds of a request outside the model
    replaying    done, total (settings)
    trying       done, total (trials); workers, threads, batchSize
    done         load, lengths (or None), points, frontier (indices of points), recommended (index or None), rule,
                 now (index)
    failed       message, details: there is no result
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec


class TuneOrder(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The order.

    Attributes:
        trace, worker: the daemon's documents `/tsctl/trace/MODEL` and `/tsctl/worker/MODEL`.
        settings: the daemon's settings that its workers' environment depends on.
        most: the largest batch size to measure.
        workers: numbers of workers to try; empty for a sensible choice.
        clients, rate: a load to assume instead of the recorded one.
        seconds: how long each batch size is measured.
        slo: limit on the p99 in seconds.
    """

    trace: Mapping[str, Any]
    worker: Mapping[str, Any]
    settings: Mapping[str, str] = {}
    content_type: str = ""
    most: int = 32
    workers: Sequence[int] = ()
    clients: int | None = None
    rate: float | None = None
    seconds: float = 1.0
    slo: float | None = None


def read_order(line: bytes) -> TuneOrder:
    return msgspec.json.decode(line, type=TuneOrder)
