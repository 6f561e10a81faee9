"""One model version with stub workers on a virtual clock: driven by a load, measured by `Measured`."""

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean

from tests.kit.clock import FakeClock
from tests.kit.stub import StubEngine
from tests.lab.percentile import nearest_rank
from tests.lab.policies.cores import Cores, SharingEngine
from tsctl.daemon.batching.dispatcher import Dispatcher
from tsctl.daemon.batching.policies.collector import Collector
from tsctl.daemon.batching.queue import BatchChoice, Queue, patience
from tsctl.daemon.batching.traffic.times import PaddedTimes
from tsctl.daemon.batching.traffic.traffic import Traffic
from tsctl.daemon.core.job import Batch, Caller, Job, Outcome, Reply
from tsctl.daemon.workers.engine import BatchEvents, Exit, Worker, WorkerSpec
from tsctl.daemon.workers.pool import Pool

ANSWER = Reply(200, b"")
Done = Callable[[], None]
MakeCollector = Callable[[int, float, Traffic], Collector]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedModel:
    """The simulated model and its settings; times in seconds.

    Attributes:
        a, c: a batch of n takes a + c·n …
        curve: the seconds of a batch by its size, in place of a + c·n; None for that.
        noise: … times a factor drawn uniformly from 1 ± noise.
        cores: the number of cores that the workers share; by default each worker has its own.
        load_time: seconds until a worker is ready; the first ones are ready at the start.
        lengths: of requests, from which one is drawn at random for each. A batch is padded to its longest, and takes
            a + c·n·longest / length. Without any, all are alike.
        length: see `lengths`; 0.0 for their mean.
        choice: makes what chooses the jobs of a batch, from the learned times of padded batches, and the queue timeout
            (none); None for by age.
    """

    a: float = 0.008
    c: float = 0.0004
    curve: Callable[[float], float] | None = None
    batch_size: int = 32
    max_delay: float = 0.020
    workers: int = 1
    noise: float = 0.05
    cores: float = math.inf
    load_time: float = 0.0
    lengths: Sequence[int] = ()
    length: float = 0.0
    choice: Callable[[PaddedTimes, float], BatchChoice] | None = None


class SimulatedProcessor:
    """The processor shared by the workers of several models; runs one batch at a time."""

    def __init__(self) -> None:
        self._free = 0.0

    def run(self, seconds: float, now: float) -> float:
        """Queue a batch; return the seconds until the batch ends."""
        self._free = max(self._free, now) + seconds
        return self._free - now


@dataclass(slots=True)
class Measured:
    """The measurements of a run; moments and durations in seconds.

    Attributes:
        finished: requests as (time of arrival, latency), in order of response.
        sizes: batch size → number of batches.
        reasons: reason for sending → number of batches.
        longest_hold: the longest time that a job waited beside an idle worker.
    """

    finished: list[tuple[float, float]] = field(default_factory=list)
    sizes: Counter[int] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    longest_hold: float = 0.0

    def settled(self, share: float = 0.1) -> "Measured":
        """Return a copy without the first tenth, or another share."""
        return replace(self, finished=self.finished[round(len(self.finished) * share) :])

    @property
    def throughput(self) -> float:
        """Responses a second."""
        ended = [arrived + latency for arrived, latency in (self.finished[0], self.finished[-1])]
        return (len(self.finished) - 1) / (ended[1] - ended[0])

    @property
    def mean(self) -> float:
        return sum(latency for _, latency in self.finished) / len(self.finished)

    def percentile(self, percent: float) -> float:
        """Return the latency that this percentage of the requests does not exceed (nearest rank)."""
        return nearest_rank(sorted(latency for _, latency in self.finished), percent)


class World:
    """One version, its workers and its clock.

    Args:
        beside: a world whose clock and processor this one shares.

    Attributes:
        random: the load's random numbers; separate from the workers' noise, so that every policy meets the same
            arrivals. A seed determines a run.
    """

    def __init__(
        self,
        model: SimulatedModel,
        make_collector: MakeCollector,
        seed: int = 1,
        beside: "World | None" = None,
    ) -> None:
        self.clock: FakeClock = FakeClock(start=0.0) if beside is None else beside.clock
        self._processor: SimulatedProcessor | None = None
        if beside is not None:
            self._processor = beside._processor = beside._processor or SimulatedProcessor()
        self.random = random.Random(f"load {seed}")
        self._chance = random.Random(f"service {seed}")
        self._lengths = random.Random(f"lengths {seed}")
        self._length = (model.length or fmean(model.lengths)) if model.lengths else 0.0
        self.model = model
        self.measured = Measured()
        self.traffic = Traffic(model.batch_size)
        engine: StubEngine
        if model.cores < model.workers:
            cores = Cores(self.clock, model.cores)
            engine = SharingEngine(self.clock, jobs_time=self._seconds, answer=_answer, cores=cores)
        else:
            engine = StubEngine(self.clock, jobs_time=self._seconds, answer=_answer)
        self.pool = Pool(engine, _SPEC, self.clock, self, cores=1)
        self.queue = Queue("simulated", 1_000_000, 2**40, patience(model.max_delay))
        self.traffic.learn_lengths(model.choice is not None)
        if model.choice is not None and self.traffic.padded is not None:
            self.queue.choice = model.choice(self.traffic.padded, math.inf)
        collector = make_collector(model.batch_size, model.max_delay, self.traffic)
        self.dispatcher = Dispatcher(self.queue, collector, self.pool, self.clock, self.traffic)
        self.pool.scale(model.workers)
        self.clock.settle()
        engine.load_time = model.load_time

    def submit(self, caller: Caller | None, done: Done) -> None:
        """Send a request now; `done` is called on its response."""
        arrived = self.clock.now()

        def deliver(reply: Reply) -> None:
            self.measured.finished.append((arrived, self.clock.now() - arrived))
            done()

        job = Job("", (), (), arrived, deliver, caller=caller)
        if self.model.lengths:
            job.size = self._lengths.choice(self.model.lengths)
        self.dispatcher.submit(job)

    def run(self, requests: int, longest: float = 1e9) -> Measured:
        """Advance the clock until so many requests are answered, at most `longest` seconds."""
        end = self.clock.now() + longest
        while len(self.measured.finished) < requests and self.clock.now() < end and self.clock.step():
            pass
        self.measured.sizes = self.dispatcher.sizes
        self.measured.reasons = self.dispatcher.reasons
        self.measured.longest_hold = self.dispatcher.longest_hold
        return self.measured

    def _seconds(self, jobs: Sequence[Job]) -> float:
        size = float(len(jobs))
        if self._length:
            size *= max(job.size for job in jobs) / self._length
        noise = self._chance.uniform(1 - self.model.noise, 1 + self.model.noise)
        curve = self.model.curve
        seconds = (self.model.a + self.model.c * size if curve is None else curve(size)) * noise
        return seconds if self._processor is None else self._processor.run(seconds, self.clock.now())

    # BatchEvents.

    def ended(self, worker: Worker, batch: Batch, outcomes: Sequence[Outcome], seconds: float) -> None:
        self.dispatcher.ended(worker, batch, outcomes, seconds)

    def streamed(self, worker: Worker, job: Job, piece: Reply) -> None:
        raise AssertionError("a simulated worker answers in one piece")

    def late(self, worker: Worker, job: Job, reply: Reply) -> None:
        raise AssertionError("a simulated worker is never late")

    # PoolListener.

    @property
    def batches(self) -> BatchEvents:
        return self

    def worker_idle(self) -> None:
        self.dispatcher.wake()

    def pool_changed(self) -> None:
        """Do nothing: the number of workers is constant."""

    def worker_started(self) -> None:
        """Do nothing: the workers are not counted."""

    def worker_exited(self, worker: Worker, how: Exit, expected: bool) -> None:
        """Do nothing: simulated workers do not end."""


def _answer(job: Job) -> Reply:
    return ANSWER


_SPEC = WorkerSpec(
    model_name="simulated", model_version="1.0", model_dir=Path("/nowhere"), handler="none", manifest={},
    batch_size=1, startup_timeout=1.0, response_timeout=1.0,
)  # fmt: skip
