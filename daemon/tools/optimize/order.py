"""The input of `python -P -m daemon.tools.optimize`: a JSON line on stdin, then the body of the request.

The output is JSON lines, each with a `stage`:

    loading      optimize; done, total (sets)
    measuring    optimize; done, total (sets)
    measured     a row, see measuring.py
    done         batchSize, threads, rows, again (seconds of a batch of the plain model at the end), changed (by how
                 much these differ from those of the start, relative), recommended (a row's `optimize`, or None)
    failed       message, details: there is no result
"""

from collections.abc import Mapping
from typing import Any

import msgspec


class OptimizeOrder(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The order.

    Attributes:
        trace, worker: the daemon's documents `/tsctl/trace/MODEL` and `/tsctl/worker/MODEL`.
        settings: the daemon's settings that its workers' environment depends on.
        seconds: how long each set is measured.
    """

    trace: Mapping[str, Any]
    worker: Mapping[str, Any]
    settings: Mapping[str, str] = {}
    content_type: str = ""
    seconds: float = 3.0


def read_order(line: bytes) -> OptimizeOrder:
    return msgspec.json.decode(line, type=OptimizeOrder)
