"""A pool of stub workers on a fake clock, and what it told its model."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tests.kit.build import make_spec
from tests.kit.client import Client
from tests.kit.clock import FakeClock
from tests.kit.stub import StubEngine, StubWorker
from tsctl.daemon.core.job import Batch, Fate, Job, Outcome, Reply
from tsctl.daemon.workers.cores import Placement
from tsctl.daemon.workers.engine import Exit, Worker
from tsctl.daemon.workers.pool import Pool


@dataclass
class Heard:
    """The pool's calls to its model; and in place of the dispatcher, it takes back what has run."""

    idle: int = 0
    changes: int = 0
    started: int = 0
    outcomes: list[Outcome] = field(default_factory=list)
    exits: list[tuple[str, bool]] = field(default_factory=list)  # how, and whether that was expected
    pool: Pool | None = None  # whose workers' batches end here

    @property
    def batches(self) -> "Heard":
        return self

    def worker_idle(self) -> None:
        self.idle += 1

    def ended(self, worker: Worker, batch: Batch, outcomes: Sequence[Outcome], seconds: float) -> None:
        assert self.pool is not None
        before = self.pool.idle
        self.pool.take_back(worker, outcomes[0].fate is Fate.ANSWERED)
        self.idle += self.pool.idle - before
        self.outcomes.extend(outcomes)

    def streamed(self, worker: Worker, job: Job, piece: Reply) -> None:
        raise AssertionError(f"nothing is streamed here: {job} {piece}")

    def late(self, worker: Worker, job: Job, reply: Reply) -> None:
        raise AssertionError(f"nothing is late here: {job} {reply}")

    def pool_changed(self) -> None:
        self.changes += 1

    def worker_started(self) -> None:
        self.started += 1

    def worker_exited(self, worker: Worker, how: Exit, expected: bool) -> None:
        self.exits.append((how.reason, expected))


class StubPool:
    """A pool of stub workers on a fake clock.

    Args:
        wanted: workers that are ready at the start.
        load_time: seconds; a batch takes one.
    """

    def __init__(
        self, *, wanted: int = 0, cores: int = 8, load_time: float = 0.01, devices: Sequence[int] = ()
    ) -> None:
        self.clock = FakeClock()
        self.engine = StubEngine(self.clock, load_time=load_time, batch_time=lambda size: 1.0)
        self.heard = Heard()
        spec = replace(make_spec(), devices=devices)
        self.pool = Pool(self.engine, spec, self.clock, self.heard, cores, Placement(len(devices)))
        self.heard.pool = self.pool
        if wanted:
            self.pool.scale(wanted)
            self.clock.advance(load_time)

    @property
    def workers(self) -> list[StubWorker]:
        return self.engine.workers

    @property
    def states(self) -> list[str]:
        return [slot.state.name for slot in self.pool.slots]

    def give_batch(self) -> StubWorker:
        job = Client().job("j")
        job.send()
        worker = self.pool.take_idle()
        worker.predict(Batch(1, [job], "full"))
        assert isinstance(worker, StubWorker)
        return worker
