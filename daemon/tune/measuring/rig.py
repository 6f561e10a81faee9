"""Throw-away workers of one model, as many as a placement has, and batches that run on them at the same time.

A batch's time is from the moment the daemon hands it over to the moment it has the answers: with the frames, as the
dispatcher sees it.
"""

import asyncio
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from daemon.clock import Clock
from daemon.http.messages import new_request_id
from daemon.job import Batch, Job, Outcome, Param, Reply
from daemon.workers.engine import Engine, WorkerSpec
from daemon.workers.pool import Pool

ENOUGH = 200  # batches of a size, for each busy worker
LEAST = 5
SLOW = 1.0  # seconds; of batches that take so long, fewer will do
LEAST_OF_SLOW = 3


class SampleFailed(Exception):
    """The model cannot answer the request it is measured with; the message is the handler's."""


class LoadFailed(Exception):
    """A throw-away worker did not come up; `details` is the handler's traceback."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.details = details


class Rig:
    """Workers that are measured, then thrown away.

    Args:
        threads: of each.
        params: of the request that all batches are made of.

    Attributes:
        answer: the body of the last answer.
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
        """Have all workers ready.

        Raises:
            LoadFailed: one could not be loaded.
        """
        self._pool.scale(self.workers)
        while self._pool.ready < self.workers:
            failure = self._pool.failure
            if failure is not None:
                raise LoadFailed(failure.error, failure.traceback)
            self._changed.clear()
            await self._changed.wait()

    async def measure(self, size: int, busy: int, seconds: float) -> list[float]:
        """Keep `busy` workers at work on batches of `size` for about so long; give what each batch took.

        The first of each worker does not count: a new size makes libraries plan and allocate.

        Raises:
            SampleFailed: an answer was an error, or a worker died.
        """
        took: list[float] = []
        began: dict[int, float] = {}
        warm = busy  # batches that do not count
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
                least = busy * (LEAST if took[0] < SLOW else LEAST_OF_SLOW)
                if len(took) >= busy * ENOUGH or (now >= end and len(took) >= least):
                    done.set_result(None)
            if not done.done():
                self._clock.soon(send)
            elif not began:
                self._changed.set()

        self._ended = ended
        for _ in range(busy):
            send()
        await done
        while began:  # the last are not alone, but do not count
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

    # PoolListener.

    def worker_idle(self) -> None:
        """Whoever measures sends the next batch."""

    def batch_ended(self, batch: Batch, outcomes: Sequence[Outcome], seconds: float) -> None:  # noqa: ARG002
        if outcomes[0].reply is not None:
            self.answer = outcomes[0].reply.body
        self._ended(batch, outcomes)

    def job_streamed(self, job: Job, piece: Reply) -> None:
        """Its time counts, not what it says."""

    def pool_changed(self) -> None:
        self._changed.set()


def _failure(outcomes: Sequence[Outcome]) -> str | None:
    for outcome in outcomes:
        if outcome.reply is None:
            return f"the worker died: {outcome.reason}"
        if outcome.reply.error or outcome.reply.status >= 400:
            return outcome.reply.body.decode("utf-8", "replace") or f"it answered with status {outcome.reply.status}"
    return None
