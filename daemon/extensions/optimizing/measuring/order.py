"""The input of the program: a JSON line on stdin, then the body of the request.

The output is JSON lines, each with a `stage`:

    loading      optimize; done, total (sets)
    measuring    optimize; done, total (sets)
    done         rows (choice.py); for `tsctl optimize` batchSize, threads, recommended (a row's `optimize`, or None)
    failed       message, details: there is no result
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec


class TrialOrder(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The order of the daemon's own trial, which has the lowest priority, and keeps its findings for later loads.

    The program ends when stdin is closed.

    Attributes:
        sets: those to try beside the plain model, by their names.
        threads: of each worker.
        body_bytes: the length of the body on stdin.
        state_dir: where outcomes and compiled code are kept.
    """

    sets: Sequence[Sequence[str]]
    threads: int
    body_bytes: int
    state_dir: str


class OptimizeOrder(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The order.

    Attributes:
        model: the daemon's document `/tsctl/worker/MODEL`; `cpus`, too, in the daemon's own trial.
        settings: the daemon's settings that its workers' environment depends on.
        seconds: how long each set is measured.
        trial: the daemon's own trial, beside its models; None for `tsctl optimize`.
    """

    model: Mapping[str, Any]
    settings: Mapping[str, str] = {}
    content_type: str = ""
    seconds: float = 3.0
    trial: "TrialOrder | None" = None


def read_order(line: bytes) -> OptimizeOrder:
    return msgspec.json.decode(line, type=OptimizeOrder)
