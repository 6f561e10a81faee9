"""The pieces of an answer that a whole one is made of: kept up to a bound, and refused beyond it."""

import asyncio
import tracemalloc

import pytest

from tests.api.inference.test_streaming import Flow
from tests.kit.version import StubVersion
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.core.job import Job, Piece, Reply
from tsctl.daemon.extensions.grpc import prediction as predictions
from tsctl.daemon.extensions.grpc.codes import Code
from tsctl.daemon.extensions.grpc.heads import read_head
from tsctl.daemon.extensions.grpc.prediction import CallFailed, replies_at_end
from tsctl.daemon.extensions.grpc.waiting.arrivals import Arrivals

BOUND = 100_000


async def _called(version: StubVersion) -> tuple["asyncio.Task[list[Reply]]", Job]:
    """Make a call that wants a whole answer; return it with its job, which a worker has."""
    clock = version.clock
    head = read_head("/p.S/Predictions", (), None, clock.now())
    call = asyncio.create_task(replies_at_end(Arrivals(clock), version.model, head, [], unnamed=True))
    await asyncio.sleep(0)
    clock.settle()
    return call, version.engine.workers[0].batches[0].jobs[0]


@pytest.mark.parametrize("size", [1024, 1])
async def test_a_call_for_a_whole_answer_keeps_no_more_pieces_than_the_bound_says(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(predictions, "MOST_KEPT", BOUND)
    version = StubVersion(clock=FakeClock())
    call, job = await _called(version)
    flow = Flow()

    tracemalloc.start()
    for _ in range(10_000):
        job.stream(Piece(200, bytes(bytearray(size)), flow=flow))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert most < 10 * BOUND, "the pieces were kept"
    assert "refused" in flow.told, "the worker goes on for nobody"
    with pytest.raises(CallFailed, match="more than 100000 bytes in pieces") as failed:
        await call
    assert failed.value.code is Code.RESOURCE_EXHAUSTED
