"""The simulation finds errors: each is planted into the daemon, and some seed tells of it by the right sentence."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from daemon.api.management.status import is_compiled
from daemon.batching import quarantine
from daemon.batching.alarm import Alarm
from daemon.batching.dispatcher import Dispatcher
from daemon.batching.fingerprint import fingerprint
from daemon.batching.policies.collector import Facts, Send, Wait
from daemon.batching.policies.fixed import Fixed
from daemon.batching.quarantine import Quarantine
from daemon.batching.queue import Queue
from daemon.batching.screening import Screening
from daemon.core import job as jobs
from daemon.core.endings import Ending
from daemon.core.job import Batch, Fate, Job, Outcome, Reply
from daemon.metrics.version import VersionMetrics
from daemon.models.persistence.ledger import Ledger
from daemon.models.version import ModelVersion
from daemon.workers import pool, slot
from daemon.workers.engine import Worker
from daemon.workers.flows import Flows, RowFlow
from daemon.workers.inflight import InFlight
from daemon.workers.local import LocalWorker
from daemon.workers.pool import Pool
from tests.lab.simulation.run import prepare, run

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(is_compiled(), reason="what is compiled cannot be changed to plant an error"),
]
SEEDS = range(900, 1701)  # the most; most are found among the first three hundred
Plant = Callable[[pytest.MonkeyPatch], None]


def nothing(*_: Any) -> None:
    """Do not do it."""


def forgets_what_comes_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Queue, "put_back", nothing)


def puts_what_comes_back_last(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Queue, "put_back", lambda queue, job: queue._add(job, first=False))


def charges_what_went_ahead(patch: pytest.MonkeyPatch) -> None:
    def give_back(in_flight: InFlight, retry: bool, reason: str, fate: Fate) -> Iterator[tuple[Batch, list[Outcome]]]:
        while in_flight._batches:
            batch = in_flight._batches.popitem()[1]
            yield batch, [Outcome(job, None, fate, retry, reason) for job in batch.jobs]

    patch.setattr(InFlight, "give_back", give_back)


def answers_twice(patch: pytest.MonkeyPatch) -> None:
    once = Job.answer

    def answer(job: Job, reply: Reply, ending: Ending | None = None) -> None:
        once(job, reply, ending)
        if reply.status == 500:
            job._deliver(reply)

    patch.setattr(Job, "answer", answer)


def answers_those_who_left(patch: pytest.MonkeyPatch) -> None:
    def abandon(dispatcher: Dispatcher, job: Job) -> None:
        if job.phase is jobs.JobPhase.QUEUED:
            once(dispatcher, job)

    once = Dispatcher.abandon
    patch.setattr(Dispatcher, "abandon", abandon)


def holds_for_too_long(patch: pytest.MonkeyPatch) -> None:
    def decide(fixed: Fixed, facts: Facts, now: float) -> Send | Wait:
        fixed._max_delay = 0.7
        return once(fixed, facts, now)

    once = Fixed.decide
    patch.setattr(Fixed, "decide", decide)


def is_not_woken_by_an_idle_worker(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ModelVersion, "worker_idle", nothing)


def sends_one_too_many(patch: pytest.MonkeyPatch) -> None:
    once = Dispatcher._take
    patch.setattr(Dispatcher, "_take", lambda dispatcher, count: once(dispatcher, count + 1))


def takes_the_last_first(patch: pytest.MonkeyPatch) -> None:
    once = Queue._add
    patch.setattr(Queue, "_add", lambda queue, job, first: once(queue, job, first=True))


def lets_what_killed_a_worker_have_company(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Job, "runs_alone", property(lambda job: job.exclusive))


def tries_three_times(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(jobs, "MAX_ATTEMPTS", 3)


def runs_again_what_was_answered_in_part(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Job, "may_return", property(lambda job: job.phase is jobs.JobPhase.SENT and job.attempt < 2))


def runs_again_what_may_not(patch: pytest.MonkeyPatch) -> None:
    once = InFlight.give_back
    patch.setattr(InFlight, "give_back", lambda in_flight, retry, *reason: once(in_flight, True, *reason))


def sets_no_alarm(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Alarm, "set", nothing)


def forgets_bytes(patch: pytest.MonkeyPatch) -> None:
    def gone(queue: Queue, job: Job) -> None:
        size, before = queue.bytes, once(queue, job)
        queue.bytes = size
        return before

    once = Queue._gone
    patch.setattr(Queue, "_gone", gone)


def counts_no_batches(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(VersionMetrics, "sent", nothing)


def replaces_nobody(patch: pytest.MonkeyPatch) -> None:
    def exited(pool: Pool, worker: Any, how: Any) -> None:
        leaving.append(worker)
        once(pool, worker, how)
        leaving.clear()

    once, reconcile, leaving = Pool.exited, Pool.reconcile, list[Any]()
    patch.setattr(Pool, "exited", exited)
    patch.setattr(Pool, "reconcile", lambda pool, grace=None: leaving or reconcile(pool, grace))


def never_gives_up(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(slot, "RESTART_LIMIT", 1000)


def waits_for_ever_for_a_worker(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LocalWorker, "_time_response", nothing)


def takes_a_late_answer_for_the_next(patch: pytest.MonkeyPatch) -> None:
    def expire(in_flight: InFlight, retry: bool, reply: Reply) -> tuple[Batch, list[Outcome]]:
        ended = once(in_flight, retry, reply)
        in_flight.overdue = None
        return ended

    def done(worker: LocalWorker, message: Any) -> None:
        batch = worker.in_flight.running
        once_done(worker, message if batch is None else type(message)(batch.id, message.answers, message.seconds))

    once, once_done = InFlight.expire, LocalWorker._done
    patch.setattr(InFlight, "expire", expire)
    patch.setattr(LocalWorker, "_done", done)


def does_not_notice_a_lost_worker(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LocalWorker, "_disconnect", nothing)


def holds_though_it_stops(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ModelVersion, "stop", lambda model: setattr(model, "stopping", True))


def leaves_timers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ModelVersion, "close", nothing)


def keeps_what_has_ended(patch: pytest.MonkeyPatch) -> None:
    kept: list[Job] = []

    def ended(
        dispatcher: Dispatcher, worker: Worker, batch: Batch, outcomes: Sequence[Outcome], seconds: float
    ) -> None:
        once(dispatcher, worker, batch, outcomes, seconds)
        kept.extend(batch.jobs[:1])

    once = Dispatcher.ended
    patch.setattr(Dispatcher, "ended", ended)


def leases_no_memory_to_workers(patch: pytest.MonkeyPatch) -> None:
    once = InFlight.take
    patch.setattr(InFlight, "take", lambda in_flight, batch, leases=(): once(in_flight, batch))


def ends_leases_with_a_kill(patch: pytest.MonkeyPatch) -> None:
    def expire(in_flight: InFlight, retry: bool, reply: Reply) -> tuple[Batch, list[Outcome]]:
        ended = once(in_flight, retry, reply)
        in_flight.end()
        return ended

    once = InFlight.expire
    patch.setattr(InFlight, "expire", expire)


def ends_leases_with_the_connection(patch: pytest.MonkeyPatch) -> None:
    def lose(worker: LocalWorker) -> None:
        worker.in_flight.end()
        once(worker)

    once = LocalWorker._disconnect
    patch.setattr(LocalWorker, "_disconnect", lose)


def keeps_memory_of_answered_batches(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(InFlight, "finish", InFlight._take_out)
    patch.setattr(InFlight, "end", nothing)


def does_not_remember(patch: pytest.MonkeyPatch) -> None:
    async def save(ledger: Ledger) -> None:
        """The disk can wait."""

    patch.setattr(Ledger, "save", save)


def gives_credit_for_what_nobody_has_read(patch: pytest.MonkeyPatch) -> None:
    def passed(flow: RowFlow, cost: int) -> None:
        once(flow, cost)
        flow.drained()

    once = RowFlow.passed
    patch.setattr(RowFlow, "passed", passed)


def gives_no_credit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RowFlow, "drained", nothing)


def takes_a_wait_for_clients_for_the_workers_time(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Flows, "used_up", lambda flows, batch: False)


def gives_up_though_there_was_work(patch: pytest.MonkeyPatch) -> None:
    once = slot.after_exit
    patch.setattr(pool, "after_exit", lambda place, answered, now, busy=False: once(place, answered, now, False))


def blames_whom_it_killed(patch: pytest.MonkeyPatch) -> None:
    once = InFlight.give_back
    patch.setattr(
        InFlight, "give_back", lambda in_flight, retry, reason, fate: once(in_flight, retry, reason, Fate.CRASHED)
    )


def takes_one_for_another(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(quarantine, "fingerprint", lambda params, headers: fingerprint(params, ()))


def is_confused_by_ids(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(quarantine, "fingerprint", lambda params, headers: repr(headers).encode())


def refuses_nobody(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Quarantine, "refusal", nothing)


def lets_suspects_have_company(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Job, "runs_alone", property(lambda job: job.exclusive or job.attempt > 0))


def does_not_look_at_those_that_wait(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Screening, "compare_waiting", nothing)


def sends_ahead_behind_suspects(patch: pytest.MonkeyPatch) -> None:
    once = Pool.take_idle
    patch.setattr(Pool, "take_idle", lambda places, alone=False: once(places))


def forgets_those_that_are_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Screening, "compared", nothing)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "sentence"),
    [
        (forgets_what_comes_back, "the queue counts those that wait"),
        (puts_what_comes_back_last, "what has come back is sent first"),
        (charges_what_went_ahead, "what was sent ahead and not begun"),
        (answers_twice, "a request is answered once"),
        (answers_those_who_left, "whoever has left is told nothing"),
        (holds_for_too_long, "nobody is held for more than the maximum delay"),
        (is_not_woken_by_an_idle_worker, "no idle worker stands beside a batch that is due"),
        (sends_one_too_many, "a batch has from one job to the batch size"),
        (takes_the_last_first, "first in is first out"),
        (lets_what_killed_a_worker_have_company, "what a worker died with travels alone"),
        (tries_three_times, "a request is tried twice at most"),
        (runs_again_what_was_answered_in_part, "what was answered in part is not run again"),
        (runs_again_what_may_not, "a handler sees a request as often as it may"),
        (sets_no_alarm, "nobody waits beyond the"),
        (forgets_bytes, "the queue counts those that wait"),
        (counts_no_batches, "the metrics say what was"),
        (replaces_nobody, "who backs off is woken"),
        (never_gives_up, "a slot gives up"),
        (waits_for_ever_for_a_worker, "everybody is answered in the end"),
        (takes_a_late_answer_for_the_next, "an answer goes to whoever asked"),
        (does_not_notice_a_lost_worker, "nothing is sent to a worker that is known to end"),
        (holds_though_it_stops, "no idle worker stands beside a batch that is due"),
        (leaves_timers, "no timer is left of a version that has gone"),
        (keeps_what_has_ended, "nothing holds a request that has ended"),
        (leases_no_memory_to_workers, "a worker reads what its request was sent with"),
        (ends_leases_with_a_kill, "a worker reads what its request was sent with"),
        (ends_leases_with_the_connection, "a worker reads what its request was sent with"),
        (keeps_memory_of_answered_batches, "no memory is left to whoever has ended"),
        (does_not_remember, "what is registered is on the disk"),
        (gives_credit_for_what_nobody_has_read, "credit is given for what a client has read"),
        (gives_no_credit, "only who does not read is cut"),
        (takes_a_wait_for_clients_for_the_workers_time, "a wait for clients is not the worker's time"),
        (gives_up_though_there_was_work, "a version fails only where workers cannot load"),
        (blames_whom_it_killed, "who ends of itself makes suspects"),
        (takes_one_for_another, "only what has ended two workers alone is refused"),
        (is_confused_by_ids, "what has ended two workers alone is refused for a minute"),
        (refuses_nobody, "what has ended two workers alone is refused for a minute"),
        (lets_suspects_have_company, "what may end its worker travels alone"),
        (does_not_look_at_those_that_wait, "what may end its worker travels alone"),
        (sends_ahead_behind_suspects, "the pool knows who is idle"),
        (forgets_those_that_are_compared, "healthy requests are answered"),
    ],
)
def test_some_seed_finds_an_error_that_was_planted(
    plant: Plant, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare()
    plant(monkeypatch)

    found = (failure.invariant for seed in SEEDS if (failure := run(seed)) is not None)

    assert any(sentence in invariant for invariant in found)
