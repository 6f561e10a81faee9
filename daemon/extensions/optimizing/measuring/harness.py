"""A throw-away worker of one model, which runs batches one after the other.

A batch's time is measured in the daemon, from the dispatch to the results, including the frames.
"""

import asyncio
import itertools
import time
from collections.abc import Sequence
from dataclasses import replace

from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.job import Batch, Job, Outcome, Param, Reply
from tsctl.daemon.http.messages import new_request_id
from tsctl.daemon.workers.engine import BatchEvents, Engine, Exit, Worker, WorkerSpec
from tsctl.daemon.workers.pool import Pool


class SampleFailed(Exception):
    """The model cannot answer the sample request; the message is the handler's."""


class HarnessLoadFailed(Exception):
    """The throw-away worker did not load.

    Attributes:
        details: the handler's traceback.
        refused: why optimisations cannot be done, if that is the reason; else empty.
    """

    def __init__(self, message: str, details: str = "", refused: str = "") -> None:
        super().__init__(message)
        self.details = details
        self.refused = refused


class Harness:
    """A worker to measure and then discard.

    Args:
        threads: of the worker.
        params: of the request repeated in all batches.
    """

    def __init__(self, engine: Engine, clock: Clock, spec: WorkerSpec, threads: int, params: Sequence[Param]) -> None:
        self._params = params
        self._ids = itertools.count(1)
        self._pool = Pool(engine, replace(spec, threads=threads), clock, self, cores=threads)
        self._changed = asyncio.Event()
        self._done = asyncio.get_running_loop().create_future()  # of the running batch: when it ended

    async def start(self) -> None:
        """Start the worker and wait until it is ready.

        Raises:
            HarnessLoadFailed: it did not load.
        """
        self._pool.scale(1)
        while not self._pool.ready:
            failure = self._pool.failure
            if failure is not None:
                raise HarnessLoadFailed(failure.error, failure.traceback, failure.refused)
            self._changed.clear()
            await self._changed.wait()

    @property
    def worker(self) -> Worker:
        """The loaded worker."""
        (worker,) = self._pool.workers
        return worker

    async def measure(self, size: int) -> float:
        """Return the seconds of a batch of `size`.

        One before it is discarded: a new size makes libraries plan and allocate, and another worker has had the caches.

        Raises:
            SampleFailed: a response was an error, or the worker died.
        """
        await self._run(size)
        return await self._run(size)

    async def _run(self, size: int) -> float:
        """Run one batch, and return its seconds."""
        batch = Batch(next(self._ids), [self._job() for _ in range(size)], "measured")
        for job in batch.jobs:
            job.send()
        self._done = asyncio.get_running_loop().create_future()
        began = time.monotonic()
        self._pool.take_idle().predict(batch)
        return float(await self._done) - began

    async def close(self) -> None:
        self._pool.kill()
        while not self._pool.empty:
            self._changed.clear()
            await self._changed.wait()

    def _job(self) -> Job:
        headers = [("url_path", ""), ("explain", "False")]
        return Job(new_request_id(), self._params, headers, time.monotonic(), lambda reply: None, lambda piece: None)

    # BatchEvents.

    def ended(self, worker: Worker, batch: Batch, outcomes: Sequence[Outcome], seconds: float) -> None:  # noqa: ARG002
        self._pool.take_back(worker, outcomes[0].reply is not None)
        failure = _failure(outcomes)
        if self._done.done():  # cancelled
            return
        if failure is None:
            self._done.set_result(time.monotonic())
        else:
            self._done.set_exception(SampleFailed(failure))

    def streamed(self, worker: Worker, job: Job, piece: Reply) -> None:
        """Ignore pieces: only the time counts."""

    def late(self, worker: Worker, job: Job, reply: Reply) -> None:
        """Ignore late rows: their batch ends."""

    # PoolListener.

    @property
    def batches(self) -> BatchEvents:
        return self

    def worker_idle(self) -> None:
        """Do nothing: `measure` sends the next batch."""

    def pool_changed(self) -> None:
        self._changed.set()

    def worker_started(self) -> None:
        """Do nothing: the workers are not counted."""

    def worker_exited(self, worker: Worker, how: Exit, expected: bool) -> None:
        """Do nothing: the outcome of its batch tells that a worker has ended."""


def _failure(outcomes: Sequence[Outcome]) -> str | None:
    for outcome in outcomes:
        if outcome.reply is None:
            return f"the worker died: {outcome.reason}"
        if outcome.reply.error or outcome.reply.status >= 400:
            return (
                outcome.reply.body.decode("utf-8", "replace")
                or f"the model answered with status {outcome.reply.status}"
            )
    return None
