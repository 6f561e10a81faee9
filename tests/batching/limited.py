"""A model with stub workers, whose requests may take only so long."""

from typing import Any

from daemon.core.clock import FakeClock
from daemon.core.job import Budget, Job, Reply
from daemon.models.version import Model
from daemon.workers.stub import StubEngine, StubWorker
from tests.build import Client, make_model

HEADER = "x-request-deadline-ms"


class Bench:
    """A model with a stub worker, each batch taking a second."""

    def __init__(self, *, workers: int = 1, batch_time: float = 1.0, **settings: Any) -> None:
        self.clock = FakeClock()
        self.engine = StubEngine(self.clock, batch_time=lambda size: batch_time, capacity=1)
        self.model: Model = make_model(self.engine, self.clock, **{"policy": "greedy"} | settings)
        self.client = Client()
        self.answered_at: dict[str, float] = {}
        self.model.pool.scale(workers)
        self.clock.settle()

    def send(self, name: str, seconds: float | None = None, *, receipt: float = 0.0, **further: Any) -> Job:
        """Submit a job that may take so many seconds from when its headers came, `receipt` seconds ago."""
        now = self.clock.now()
        budget = None if seconds is None else Budget(seconds, now - receipt, HEADER)

        def deliver(reply: Reply) -> None:
            self.client.replies.append((name, reply))
            self.answered_at[name] = self.clock.now() - now

        job = Job(name, [], [], now, deliver, lambda piece: None, budget=budget, **further)
        self.model.submit(job)
        self.clock.settle()
        return job

    def learn(self, times: int = 2) -> None:
        """Let batches of one come back, so that their time is known (the first of a worker does not count)."""
        for index in range(times):
            self.send(f"learning {index}")
            while not self.model.idle:
                self.clock.step()
        self.client.replies.clear()

    @property
    def worker(self) -> StubWorker:
        return self.engine.workers[0]

    @property
    def sent(self) -> list[str]:
        batches = sorted((b for worker in self.engine.workers for b in worker.batches), key=lambda batch: batch.id)
        return [job.id for batch in batches for job in batch.jobs]

    def told(self, name: str) -> str:
        (reply,) = (reply for other, reply in self.client.replies if other == name)
        assert (reply.status, reply.error) == (504, "RequestTimeoutException")
        return reply.body.decode()
