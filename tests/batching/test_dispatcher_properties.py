"""Invariants of the dispatcher and the pool under any events in any order.

A machine makes jobs arrive, with deadlines and of both priorities, clients leave, workers die and hang, time pass and
the pool change its size, over a real model on stub workers and a clock that it moves.
"""

import dataclasses
from functools import partial

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.kit.build import make_model
from tsctl.daemon.batching.policies.fixed import Fixed
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.core.job import MAX_ATTEMPTS, Batch, Job, JobPhase, Param, Reply, TimeBudget
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.slot import SlotState
from tsctl.daemon.workers.state import WorkerState
from tsctl.daemon.workers.stub import StubEngine, StubWorker

MAX_DELAY = 0.1


@dataclasses.dataclass
class Sent:
    """A job that was accepted, and what became of it."""

    job: Job
    replies: list[Reply]
    left: bool = False
    answered_at: float | None = None

    @property
    def late(self) -> bool:
        """Whether the request was answered 504."""
        return any(reply.status == 504 for reply in self.replies)


class Service(RuleBasedStateMachine):
    @initialize(
        batch_size=st.integers(1, 4),
        policy=st.sampled_from(["auto", "fixed", "greedy"]),
        queue_jobs=st.sampled_from([3, 100]),
        workers=st.integers(1, 3),
        batch_time=st.sampled_from([0.0, 0.05, 0.3]),
        queue_timeout=st.sampled_from([0.0, 0.0, 0.5]),
    )
    def start(
        self, batch_size: int, policy: str, queue_jobs: int, workers: int, batch_time: float, queue_timeout: float
    ) -> None:
        self.clock = FakeClock()
        self.engine = StubEngine(self.clock, load_time=0.02, batch_time=lambda size: batch_time)
        self.batch_size, self.batch_time = batch_size, batch_time
        self.model: ModelVersion = make_model(
            self.engine, self.clock, batch_size=batch_size, policy=policy, max_delay=MAX_DELAY, queue_jobs=queue_jobs,
            queue_timeout=queue_timeout,
        )  # fmt: skip
        self.sent: dict[str, Sent] = {}
        self.queue_timeout = queue_timeout
        self.died_in: dict[str, int] = {}  # job → the first that its worker had started when it died or hung
        self.model.pool.scale(workers)
        self.clock.advance(0.02)

    @rule(
        count=st.integers(1, 6),
        size=st.sampled_from([0, 1, 1000]),
        low=st.booleans(),
        budget=st.sampled_from([None, None, 0.04, 0.2, 1.0, 20.0]),
    )
    def jobs_arrive(self, count: int, size: int, low: bool, budget: float | None) -> None:
        for _ in range(count):
            name, now = str(len(self.sent)), self.clock.now()
            limit = None if budget is None else TimeBudget(budget, now, "the test")
            params = [Param("body", "", bytes(size))]
            sent = Sent(Job(name, params, [], now, partial(self.answered, name), low_priority=low, budget=limit), [])
            self.sent[name] = sent
            try:
                self.model.submit(sent.job)
            except DaemonError:
                assert sent.replies == [], "a refused job is not answered as well"
                del self.sent[name]

    def answered(self, name: str, reply: Reply) -> None:
        self.sent[name].replies.append(reply)
        self.sent[name].answered_at = self.clock.now()

    @precondition(lambda self: self.alive())
    @rule(data=st.data())
    def a_client_leaves(self, data: st.DataObject) -> None:
        sent = data.draw(st.sampled_from(self.alive()))
        sent.left = True
        self.model.abandon(sent.job)

    @precondition(lambda self: self.running_workers())
    @rule(data=st.data(), retry=st.booleans())
    def a_worker_dies(self, data: st.DataObject, retry: bool) -> None:
        worker = data.draw(st.sampled_from(self.running_workers()))
        started = worker.in_flight.running
        if started is not None:
            self.died_in = {job.id: started.id for job in started.jobs} | self.died_in
        worker.die(retry=retry)

    @precondition(lambda self: any(worker.in_flight.running for worker in self.running_workers()))
    @rule(data=st.data(), retry=st.booleans())
    def a_worker_hangs(self, data: st.DataObject, retry: bool) -> None:
        worker = data.draw(st.sampled_from([each for each in self.running_workers() if each.in_flight.running]))
        started = worker.in_flight.running
        assert started is not None
        self.died_in = {job.id: started.id for job in started.jobs} | self.died_in
        worker.hang(Reply(500, b"late"), retry)

    @rule(wanted=st.integers(0, 4))
    def the_pool_is_scaled(self, wanted: int) -> None:
        self.model.pool.scale(wanted)

    @rule(seconds=st.sampled_from([0.0, 0.01, 0.1, 1.0, 10.0]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @invariant()
    def a_job_ends_once_and_is_sent_at_most_twice(self) -> None:
        for sent in self.sent.values():
            ended = sent.job.phase is JobPhase.ENDED
            assert len(sent.replies) <= 1
            assert bool(sent.replies) == (ended and not sent.left) or (sent.left and ended), sent
            assert sent.job.attempt <= MAX_ATTEMPTS

    @invariant()
    def every_job_is_somewhere(self) -> None:
        phases = [sent.job.phase for sent in self.sent.values()]
        in_workers = {job for worker in self.engine.workers for batch in worker.in_flight for job in batch.jobs}
        assert phases.count(JobPhase.QUEUED) == len(self.model.queue)
        assert self.model.dispatcher.running == len(in_workers)
        late = {sent.job for sent in self.sent.values() if sent.late}  # a worker may still have one
        assert {sent.job for sent in self.sent.values() if sent.job.phase is JobPhase.SENT} == in_workers - late
        assert self.model.dispatcher.running >= 0
        waiting = [sent.job for sent in self.sent.values() if sent.job.phase is JobPhase.QUEUED]
        assert self.model.queue.bytes == sum(job.size for job in waiting)

    @invariant()
    def a_batch_is_never_too_large_and_a_retried_job_travels_alone(self) -> None:
        for batch in self.batches():
            assert 1 <= len(batch.jobs) <= self.batch_size
            again = [job for job in batch.jobs if self.died_in.get(job.id, batch.id) < batch.id]
            assert not again or len(batch.jobs) == 1
            assert bool(again) == (batch.reason == "retry")

    @invariant()
    def a_batch_that_goes_ahead_is_full(self) -> None:
        assert all(len(batch.jobs) == self.batch_size for batch in self.batches() if batch.reason == "ahead")

    @invariant()
    def first_in_is_first_out_within_a_priority(self) -> None:
        seen: dict[str, Job] = {}
        for batch in self.batches():
            seen |= {job.id: job for job in batch.jobs if job.id not in seen}
        for low in (False, True):
            numbers = [int(name) for name, job in seen.items() if job.low_priority is low]
            assert numbers == sorted(numbers)

    @invariant()
    def nobody_waits_beyond_a_limit(self) -> None:
        self.clock.settle()
        now = self.clock.now()
        for sent in self.sent.values():
            if sent.job.phase is not JobPhase.ENDED and not sent.left:
                assert now < sent.job.deadline
            if sent.job.phase is JobPhase.QUEUED and self.queue_timeout:
                assert now < sent.job.queued + self.queue_timeout

    @invariant()
    def an_answer_is_in_time_and_nobody_is_turned_away_for_nothing(self) -> None:
        for sent in self.sent.values():
            if sent.answered_at is None:
                continue
            assert sent.answered_at <= sent.job.deadline
            if sent.late and not self.queue_timeout:
                assert sent.answered_at >= sent.job.deadline - self.batch_time * 1.01

    @invariant()
    def what_has_expired_is_counted(self) -> None:
        expired = self.model.dispatcher.expired
        assert expired.total() == sum(sent.late for sent in self.sent.values())

    @invariant()
    def deadlines_are_watched_where_there_are_any(self) -> None:
        dispatcher, queue = self.model.dispatcher, self.model.queue
        jobs = [sent.job for sent in self.sent.values() if sent.job.budget is not None and not sent.left]
        assert len(queue.deadlines) == sum(job.phase is JobPhase.QUEUED for job in jobs)
        assert len(dispatcher.expiry.sent) == sum(job.phase is JobPhase.SENT for job in jobs)

    @invariant()
    def no_idle_worker_stands_beside_a_batch_that_is_due(self) -> None:
        self.clock.settle()
        queue, pool = self.model.queue, self.model.pool
        if not len(queue) or not pool.idle:
            return
        assert self.model.settings.policy != "greedy"
        assert len(queue) < self.batch_size
        assert not queue.head.attempt
        dispatcher = self.model.dispatcher
        assert dispatcher._timer is not None, "somebody looks again"
        held, _ = queue.since()
        assert held is not None and self.clock.now() < held + MAX_DELAY
        if isinstance(dispatcher.collector, Fixed):
            assert dispatcher.collector._forming_since is not None
            assert self.clock.now() < dispatcher.collector._forming_since + MAX_DELAY

    @invariant()
    def the_pool_has_the_workers_it_counts(self) -> None:
        pool = self.model.pool
        assert len(pool.slots) == pool.wanted
        up = [slot.worker for slot in pool.slots if slot.state is SlotState.UP]
        assert all(worker is not None and worker.state is WorkerState.READY for worker in up)
        assert pool.idle == sum(worker is not None and not worker.in_flight for worker in up)
        assert pool.granting == sum(worker is not None and len(worker.in_flight) == 1 for worker in up)
        leaving = [worker for worker in self.running_workers() if worker not in pool.workers]
        assert all(worker.state is WorkerState.DRAINING for worker in leaving)

    def teardown(self) -> None:
        """Whatever happened: with one healthy worker and time, everybody is answered or gone."""
        if not hasattr(self, "model"):
            return
        self.model.pool.scale(1)
        self.clock.advance(1000.0)

        self.a_job_ends_once_and_is_sent_at_most_twice()
        assert self.model.idle and not self.alive()

    def alive(self) -> list[Sent]:
        return [sent for sent in self.sent.values() if sent.job.phase is not JobPhase.ENDED and not sent.left]

    def running_workers(self) -> list[StubWorker]:
        return [worker for worker in self.engine.workers if worker.state is not WorkerState.EXITED]

    def batches(self) -> list[Batch]:
        sent = (batch for worker in self.engine.workers for batch in worker.batches)
        return sorted(sent, key=lambda batch: batch.id)


TestService = Service.TestCase
TestService.settings = settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=60,
    stateful_step_count=25,
    suppress_health_check=list(HealthCheck),
)
