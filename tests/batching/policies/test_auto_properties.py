"""The contract of `auto`, whatever happens and in whatever order.

Batching delays a job only while a worker is idle, at most once, and never longer than the maximum delay. And
what is known of the callers stays what counting them anew would give.
"""

import itertools

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.kit.build import make_model
from tsctl.daemon.batching.traffic.callers import CallerStats
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.core.job import Caller, Job, JobPhase, Reply
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.stub import StubEngine

MAX_DELAY = 0.02
EPSILON = 1e-9


class Anticipation(RuleBasedStateMachine):
    @initialize(
        batch_size=st.integers(2, 8),
        workers=st.integers(1, 3),
        a=st.sampled_from([0.0, 0.001, 0.008, 0.1]),
        c=st.sampled_from([0.0, 0.0004, 0.01]),
    )
    def start(self, batch_size: int, workers: int, a: float, c: float) -> None:
        self.clock = FakeClock()
        self.engine = StubEngine(self.clock, batch_time=lambda size: a + c * size)
        self.batch_size = batch_size
        self.model: ModelVersion = make_model(
            self.engine, self.clock, batch_size=batch_size, policy="auto", max_delay=MAX_DELAY, queue_jobs=50
        )
        self.jobs: list[Job] = []
        self.replies: dict[str, list[Reply]] = {}
        self.callers: list[Caller] = []
        self.stopping = False
        self.model.pool.scale(workers)
        self.clock.settle()

    def send(self, caller: Caller | None) -> None:
        name = str(len(self.replies))
        replies = self.replies[name] = []
        job = Job(name, (), (), self.clock.now(), replies.append, caller=caller)
        try:
            self.model.submit(job)
        except DaemonError:
            del self.replies[name]
            self.replies[name] = [Reply(503, b"")]
        else:
            self.jobs.append(job)

    @rule(count=st.integers(1, 4))
    def strangers_come(self, count: int) -> None:
        for _ in range(count):
            self.callers.append(Caller())
            self.send(self.callers[-1])

    @rule()
    def a_job_without_a_connection_comes(self) -> None:
        self.send(None)

    @rule(share=st.integers(0, 4))
    def so_many_clients_share_a_batch(self, share: int) -> None:
        assert self.model.traffic.halves is not None
        self.model.traffic.halves.share = share

    @precondition(lambda self: self.callers)
    @rule(data=st.data(), count=st.integers(1, 3))
    def callers_come_back(self, data: st.DataObject, count: int) -> None:
        for caller in data.draw(st.lists(st.sampled_from(self.callers), min_size=count, max_size=count)):
            self.send(caller)

    @precondition(lambda self: self.callers)
    @rule(data=st.data())
    def all_come_back_after_a_while_again_and_again(self, data: st.DataObject) -> None:
        for _ in range(data.draw(st.integers(1, 5))):
            for caller in self.callers[-self.batch_size :]:
                self.clock.advance(0.0005)
                self.send(caller)
            self.clock.advance(0.05)

    @precondition(lambda self: self.callers)
    @rule(data=st.data())
    def a_connection_closes(self, data: st.DataObject) -> None:
        caller = data.draw(st.sampled_from(self.callers))
        self.callers.remove(caller)
        caller.close()

    @precondition(lambda self: self.waiting())
    @rule(data=st.data())
    def a_client_leaves(self, data: st.DataObject) -> None:
        self.model.abandon(data.draw(st.sampled_from(self.waiting())))

    @precondition(lambda self: any(worker.in_flight for worker in self.engine.workers))
    @rule()
    def a_worker_dies(self) -> None:
        next(worker for worker in self.engine.workers if worker.in_flight).die()

    @rule(wanted=st.integers(1, 3))
    def the_pool_is_scaled(self, wanted: int) -> None:
        self.model.pool.scale(wanted)

    @rule(seconds=st.sampled_from([0.0, 0.0003, 0.001, 0.004, 0.019, 0.5, 3.0]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule()
    def the_version_is_stopped(self) -> None:
        self.stopping = True
        self.model.stop()

    def waiting(self) -> list[Job]:
        return [job for job in self.jobs if job.phase is JobPhase.QUEUED]

    @invariant()
    def no_batch_is_too_large(self) -> None:
        for batch in itertools.chain.from_iterable(worker.batches for worker in self.engine.workers):
            assert 1 <= len(batch.jobs) <= self.batch_size

    @invariant()
    def a_job_beside_an_idle_worker_goes_or_is_looked_at_again_in_time(self) -> None:
        self.clock.settle()
        waiting = self.waiting()
        if not waiting or not self.model.pool.idle:
            return
        assert len(waiting) < self.batch_size, "a whole batch is due"
        assert not self.stopping, "nothing is held while the version stops"
        assert all(job.held is not None for job in waiting)
        assert self.clock.now() <= min(job.held or 0.0 for job in waiting) + MAX_DELAY + EPSILON
        assert self.model.dispatcher._timer is not None

    @invariant()
    def each_job_is_answered_at_most_once(self) -> None:
        assert all(len(replies) <= 1 for replies in self.replies.values())

    @invariant()
    def the_callers_are_counted_right(self) -> None:
        callers = self.model.traffic.callers
        alive = [job for job in self.jobs if job.phase is not JobPhase.ENDED]
        standings: dict[CallerStats, int] = {}
        for job in alive:
            standings[job.caller_stats] = standings.get(job.caller_stats, 0) + 1
        assert all(caller_stats.outstanding == count for caller_stats, count in standings.items())
        assert callers.present == sum(caller_stats.regular for caller_stats in standings)
        assert callers.strangers == sum(not job.caller_stats.regular for job in alive if job.phase is JobPhase.QUEUED)
        assert callers.present <= callers.regulars <= callers.open <= len(self.callers)

    def teardown(self) -> None:
        self.clock.advance(60.0)
        for job in self.jobs:
            assert job.phase is JobPhase.ENDED


Anticipation.TestCase.settings = settings(
    max_examples=80, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestAnticipation = Anticipation.TestCase
