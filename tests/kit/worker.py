"""One worker without a pool: a log hears of it, and a test plays its process."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from unittest.mock import patch

from tests.http.fake import FakeTransport
from tests.kit.client import Client
from tests.kit.clock import FakeClock
from tsctl.daemon.core.arena import Arena
from tsctl.daemon.core.job import Batch, Job, Outcome, Reply
from tsctl.daemon.workers import local
from tsctl.daemon.workers.engine import (
    ENDS,
    STOPPED,
    BatchEvents,
    Exit,
    LoadFailure,
    Worker,
    WorkerListener,
    WorkerSpec,
)
from tsctl.daemon.workers.local import LocalWorker
from tsctl.daemon.workers.rows.worker import RowWorker
from tsctl.handlers import wire

W = TypeVar("W", bound=Worker)


@dataclass
class WorkerLog:
    """Writes down what an engine tells of its workers."""

    events: list[str] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    exits: list[Exit] = field(default_factory=list)
    failures: list[LoadFailure] = field(default_factory=list)

    def loaded(self, worker: Worker) -> None:
        self.events.append("loaded")

    def load_failed(self, worker: Worker, failure: LoadFailure) -> None:
        self.events.append(f"load failed: {failure.error}")
        self.failures.append(failure)

    def ended(self, worker: Worker, batch: Batch, outcomes: Sequence[Outcome], seconds: float) -> None:
        self.events.append(f"ended {batch.id} after {seconds:g}")
        self.outcomes.extend(outcomes)

    def streamed(self, worker: Worker, job: Job, piece: Reply) -> None:
        self.events.append(f"streamed {piece.body!r}")

    def late(self, worker: Worker, job: Job, reply: Reply) -> None:
        self.events.append(f"late {job.id}")

    def lost(self, worker: Worker) -> None:
        self.events.append("lost")

    def flow_changed(self, worker: Worker) -> None:
        self.events.append("congested" if worker.in_flight.congested else "relieved")

    def exited(self, worker: Worker, how: Exit) -> None:
        self.events.append(f"exited: {how.reason}")
        self.exits.append(how)


class LoneWorker(Generic[W]):
    """A worker on a fake clock, and what it tells of itself; a subclass starts it."""

    worker: W

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.log = WorkerLog()
        self.client = Client(self.clock.now)

    def predict(self, number: int, names: str) -> list[Job]:
        """Send a batch; each letter of `names` is a request, and its body."""
        jobs = [self.client.job(name, body=name.encode()) for name in names]
        for job in jobs:
            job.send()
        self.worker.predict(Batch(number, jobs, "full"))
        return jobs


class FakeLife:
    """A worker's process (workers/processes/process.py) that writes down why it is killed."""

    pid = 7
    node = waits = ""
    running = True
    group = ""
    died_of_sigkill = False

    def __init__(self, spec: Any, protocol: Any, templates: Any, loop: Any, clock: Any, over: Any, *rest: Any) -> None:
        self.over = over
        self.killed: list[str] = []
        self.suspended = False

    def suspend(self) -> bool:
        self.suspended = not self.node
        return self.suspended

    def resume(self) -> None:
        self.suspended = False

    def kill(self, because: str, kind: str = STOPPED) -> None:
        assert kind in ENDS
        self.killed.append(because)

    def socket_closed(self) -> None:
        """Do nothing: the process may have ended."""

    def member_lost(self, lost: Any) -> None:
        """Do nothing: the process is about to exit."""

    def gpu_lost(self, lost: Any) -> None:
        """Do nothing: the process is about to exit."""


class PlayedProcess:
    """A local worker whose process is the test, which says what the process would send.

    Attributes:
        worker: the daemon's side.
        life: starts no process.
        transport: what the daemon has sent.
    """

    def __init__(
        self,
        spec: WorkerSpec,
        events: WorkerListener,
        batches: BatchEvents,
        clock: FakeClock,
        arena: Arena | None = None,
    ) -> None:
        loop: Any = None
        kind = LocalWorker if spec.mode == "batch" else RowWorker
        with patch.object(local, "WorkerProcess", FakeLife):
            self.worker = kind(spec, events, batches, loop, clock, loop, arena)
        self.life: FakeLife = self.worker._process  # type: ignore[assignment]
        self.transport = FakeTransport(self.worker, clock.soon)
        self._clock = clock

    def say(self, *messages: wire.ToDaemon) -> None:
        self.write(b"".join(bytes(wire.encode(message)) for message in messages))

    def write(self, data: bytes) -> None:
        self.transport.receive(data)
        self._clock.settle()
