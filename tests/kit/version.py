"""A version with stub workers on a fake clock, and its client."""

from typing import Any

from tests.kit.build import make_model
from tests.kit.client import Client
from tests.kit.clock import FakeClock
from tests.kit.stub import StubEngine, StubWorker
from tsctl.daemon.batching.dispatcher import Dispatcher
from tsctl.daemon.core.job import Job, TimeBudget
from tsctl.daemon.metrics.version import VersionMetrics
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.engine import LoadFailure
from tsctl.daemon.workers.inflight import CAPACITY

HEADER = "x-request-deadline-ms"


class StubVersion:
    """A version with stub workers on a fake clock, and its client.

    Args:
        workers: started at once; they are ready if loading takes no time.
        load_time, batch_time: seconds that a load and a batch take.
        load_failure: the failure of every load.
        capacity: batches that a worker may hold.
        clock: by default a new one.
        settings: those of the version that differ from `make_settings`, and arguments of `make_model`.
    """

    def __init__(
        self,
        *,
        workers: int = 1,
        load_time: float = 0.0,
        batch_time: float = 1.0,
        load_failure: LoadFailure | None = None,
        capacity: int = CAPACITY,
        clock: FakeClock | None = None,
        **settings: Any,
    ) -> None:
        self.clock = clock or FakeClock()
        self.engine = StubEngine(self.clock, load_time, lambda size: batch_time, load_failure, capacity=capacity)
        self.model: ModelVersion = make_model(self.engine, self.clock, **settings)
        self.client = Client(self.clock.now)
        if workers:
            self.model.scale(workers, workers)
            self.clock.settle()

    def up(self, workers: int = 1) -> None:
        """Scale to so many workers, and let them load."""
        self.model.scale(workers, workers)
        self.clock.advance(self.engine.load_time)

    def submit(
        self, name: str, body: bytes = b"", *, seconds: float | None = None, receipt: float = 0.0, **further: Any
    ) -> Job:
        """Let a request arrive; what it sets off happens in the loop's next turn.

        Args:
            seconds: the time it may take, from when its headers came; None for any.
            receipt: the seconds since then.
            further: those of `Client.job`.
        """
        if seconds is not None:
            further["budget"] = TimeBudget(seconds, self.clock.now() - receipt, HEADER)
        job = self.client.job(name, body, **further)
        self.model.submit(job)
        return job

    def send(self, *names: str, **further: Any) -> list[Job]:
        """Let requests arrive in one turn of the loop, and be dispatched."""
        jobs = [self.submit(name, **further) for name in names]
        self.clock.settle()
        return jobs

    def ask(self, name: str, body: bytes = b"", **further: Any) -> Job:
        """Let one request arrive, and be dispatched."""
        job = self.submit(name, body, **further)
        self.clock.settle()
        return job

    @property
    def dispatcher(self) -> Dispatcher:
        return self.model.dispatcher

    @property
    def metrics(self) -> VersionMetrics:
        return self.model.metrics

    @property
    def workers(self) -> list[StubWorker]:
        """Every worker ever started, in order."""
        return self.engine.workers

    @property
    def batches(self) -> list[str]:
        """The batches in the order sent, each as the names of its requests: `a b`."""
        sent = sorted((batch for worker in self.workers for batch in worker.batches), key=lambda batch: batch.id)
        return [" ".join(job.id for job in batch.jobs) for batch in sent]

    @property
    def sent(self) -> list[str]:
        """The names of the requests in the order sent."""
        return " ".join(self.batches).split()
