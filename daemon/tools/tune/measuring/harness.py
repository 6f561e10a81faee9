"""Throw-away workers of one model, as many as a placement has, running batches at the same time.

A batch's time is measured in the daemon, from the dispatch to the results, including the frames.
"""

import asyncio
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from daemon.core.clock import Clock
from daemon.core.job import Batch, Job, Outcome, Param, Reply
from daemon.http.messages import new_request_id
from daemon.workers.engine import BatchEvents, Engine, Exit, Worker, WorkerSpec
from daemon.workers.pool import Pool

ENOUGH = 200  # batches per size and busy worker
LEAST = 5
SLOW = 1.0  # seconds; fewer batches suffice if each takes so long
LEAST_OF_SLOW = 3


class SampleFailed(Exception):
    """The model cannot answer the sample request; the message is the handler's."""


class HarnessLoadFailed(Exception):
    """A throw-away worker did not load; `details` is the handler's traceback."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.details = details


class Harness:
    """Workers to measure and then discard.

    Args:
        threads: of each worker.
        params: of the request repeated in all batches.

    Attributes:
        answer: the body of the last response.
    """

    def __init__(
        self, engine: Engine, clock: Clock, spec: WorkerSpec, workers: int, threads: int, params: Sequence[Param]
    ) -> None:
        self.workers = workers
        self.answer = b""
        self._params = params
        self._clock = clock
        self._ids = itertools.count(1)
        self._pool = Pool(engine, replace(spec, threads=threads), clock, self, cores=workers * threads)
        self._changed = asyncio.Event()
        self._ended: Callable[[Batch, Sequence[Outcome]], None] = lambda batch, outcomes: None

    async def start(self) -> None:
        """Start all workers and wait until they are ready.

        Raises:
            HarnessLoadFailed: a worker did not load.
        """
        self._pool.scale(self.workers)
        while self._pool.ready < self.workers:
            failure = self._pool.failure
            if failure is not None:
                raise HarnessLoadFailed(failure.error, failure.traceback)
            self._changed.clear()
            await self._changed.wait()

    @property
    def loaded(self) -> Sequence[Worker]:
        """The present workers."""
        return self._pool.workers

    async def measure(self, size: int, busy: int, seconds: float, least: int | None = None) -> list[float]:
        """Keep `busy` workers running batches of `size` for about `seconds`; return the seconds of each batch.

        Each worker's first batch is discarded: a new size makes libraries plan and allocate.

        Args:
            least: batches of each worker, at least; by default five, or three if each takes a second.

        Raises:
            SampleFailed: a response was an error, or a worker died.
        """
        took: list[float] = []
        began: dict[int, float] = {}
        warm = busy  # discarded batches
        done = asyncio.get_running_loop().create_future()
        end = time.monotonic() + seconds

        def send() -> None:
            jobs = [self._job() for _ in range(size)]
            batch = Batch(next(self._ids), jobs, "measured")
            for job in jobs:
                job.send()
            began[batch.id] = time.monotonic()
            self._pool.take_idle().predict(batch)

        def ended(batch: Batch, outcomes: Sequence[Outcome]) -> None:
            nonlocal warm, end
            now = time.monotonic()
            started = began.pop(batch.id)
            failure = _failure(outcomes)
            if done.done():
                pass
            elif failure is not None:
                done.set_exception(SampleFailed(failure))
            elif warm:
                warm -= 1
                if not warm:
                    end = now + seconds
            else:
                took.append(now - started)
                few = least or (LEAST if took[0] < SLOW else LEAST_OF_SLOW)
                if len(took) >= busy * ENOUGH or (now >= end and len(took) >= busy * few):
                    done.set_result(None)
            if not done.done():
                self._clock.soon(send)
            elif not began:
                self._changed.set()

        self._ended = ended
        for _ in range(busy):
            send()
        await done
        while began:  # the last batches run with fewer beside them, and are discarded
            self._changed.clear()
            await self._changed.wait()
        return took

    async def close(self) -> None:
        self._pool.kill()
        while not self._pool.empty:
            self._changed.clear()
            await self._changed.wait()

    def _job(self) -> Job:
        headers = [("url_path", ""), ("explain", "False")]
        return Job(new_request_id(), self._params, headers, time.monotonic(), self._answered, lambda piece: None)

    def _answered(self, reply: Reply) -> None:
        self.answer = reply.body

    # BatchEvents.

    def ended(self, worker: Worker, batch: Batch, outcomes: Sequence[Outcome], seconds: float) -> None:  # noqa: ARG002
        answer = outcomes[0].reply
        self._pool.take_back(worker, answer is not None)
        if answer is not None:
            self.answer = answer.body
        self._ended(batch, outcomes)

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
