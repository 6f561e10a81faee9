"""Measure how much batches and concurrent requests slow each other down.

A client queries a trivial model, one request after the other, through a daemon's own HTTP in this process, while
batches of the real model run. On a machine with a core to spare, nothing slows down.
"""

import asyncio
import time
from collections.abc import Awaitable
from statistics import median

from daemon.models.version import ModelVersion
from daemon.tools.tune.measuring.harness import Harness
from daemon.tools.tune.measuring.overhead import asked
from daemon.tools.tune.overlap import Contention

WARM = 50  # discarded requests
SHARE = 0.5  # of a measurement's time, for requests without batches beside them


async def measure_contention(harness: Harness, size: int, seconds: float, body: bytes, content_type: str) -> Contention:
    """Measure with all workers of the harness busy on batches of `size`, for `seconds` each.

    Raises:
        SampleFailed: as `Harness.measure`.
    """
    async with asked(body, content_type, harness.answer, 0) as (process, model):
        assert process.stdin is not None
        process.stdin.write(body)
        process.stdin.close()
        while _requests(model) < WARM and process.returncode is None:  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0.01)
        alone = await _rate(model, asyncio.sleep(seconds * SHARE))
        before = _requests(model), time.monotonic()
        with_others = median(await harness.measure(size, harness.workers, seconds))
        beside = (_requests(model) - before[0]) / (time.monotonic() - before[1])
    quiet = median(await harness.measure(size, harness.workers, seconds))
    return Contention(batches=max(1.0, with_others / quiet), others=max(1.0, alone / max(beside, 1e-9)))


def _requests(model: ModelVersion) -> int:
    return model.metrics.unnamed.requests


async def _rate(model: ModelVersion, while_this: Awaitable[None]) -> float:
    """Return the requests a second while `while_this` runs."""
    before, began = _requests(model), time.monotonic()
    await while_this
    return (_requests(model) - before) / (time.monotonic() - began)
