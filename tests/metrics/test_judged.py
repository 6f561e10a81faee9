"""Which requests count for or against a version: the client's doing and the model's, where both are there."""

import pytest

from tests.kit.version import StubVersion
from tsctl.daemon.core.client import ModelNotAllowed, TooManyRequests
from tsctl.daemon.core.errors import BadRequest, CutOff, Loading, NoReadyWorker, QueueFull, ResponseTimeout, Stopping
from tsctl.daemon.core.job import (
    WHOSE,
    Ending,
    Fate,
    Job,
    JobPhase,
    Outcome,
    Reply,
    TimeBudget,
    Whose,
    counts,
    ending_of_deadline,
    ending_of_refusal,
    ending_of_status,
)

HUNG = Reply(ResponseTimeout.status, b"hung", error=ResponseTimeout.kind)


def judged(version: StubVersion) -> tuple[int, int]:
    """How many requests count, and how many of them against the version."""
    return version.metrics.counts.judged, version.metrics.counts.errors


def ask(version: StubVersion, name: str, seconds: float, *, by_client: bool = True) -> Job:
    budget = TimeBudget(seconds, version.clock.now(), "a limit", by_client)
    job = version.client.job(name, budget=budget)
    version.model.submit(job)
    version.clock.settle()
    return job


def test_every_ending_is_somebodys() -> None:
    assert set(WHOSE) == set(Ending)
    assert {ending for ending in Ending if counts(ending)} == {
        Ending.ANSWERED, Ending.FAILED, Ending.OVERDUE, Ending.REFUSED,
    }  # fmt: skip


def test_a_status_says_whose_doing_an_answer_is() -> None:
    for status in range(200, 1000):
        ending = ending_of_status(status)

        assert (WHOSE[ending] is Whose.CLIENT) == (400 <= status < 500)
        assert (ending is Ending.FAILED) == (status >= 500)


@pytest.mark.parametrize(
    ("error", "ending"),
    [
        (BadRequest("no"), Ending.REJECTED),
        (ModelNotAllowed("c", "m"), Ending.REJECTED),
        (TooManyRequests("c", 1.0, 1, 1.0), Ending.REJECTED),
        (QueueFull("full"), Ending.REFUSED),
        (NoReadyWorker("none"), Ending.REFUSED),
        (Loading("soon"), Ending.REFUSED),
        (Stopping("stops"), Ending.STOPPED),
        (CutOff("stops", "1"), Ending.STOPPED),
    ],
)
def test_a_refusal_is_the_clients_the_models_or_the_operators_doing(error: QueueFull, ending: Ending) -> None:
    assert ending_of_refusal(error) is ending


def test_a_deadline_is_its_clients_unless_a_worker_has_failed_the_request() -> None:
    found = [
        ending_of_deadline(by_client=client, failed=failed) for client in (True, False) for failed in (False, True)
    ]

    assert found == [Ending.GIVEN_UP, Ending.OVERDUE, Ending.OVERDUE, Ending.OVERDUE]


@pytest.mark.parametrize("by_client", [True, False])
def test_a_deadline_counts_against_the_version_if_the_operator_set_it(by_client: bool) -> None:
    version = StubVersion(batch_time=1.0)

    job = ask(version, "a", 0.3, by_client=by_client)
    version.clock.advance(0.5)

    assert job.ending is (Ending.GIVEN_UP if by_client else Ending.OVERDUE)
    assert judged(version) == ((0, 0) if by_client else (1, 1))
    version.clock.advance(5.0)
    assert judged(version) == ((1, 0) if by_client else (1, 1)), "an answer counts for a version, heard or not; once"


@pytest.mark.parametrize("end", ["deadline", "leaves"])
@pytest.mark.parametrize("fate", ["hang", "die", "crash", "answer 500", "answer 400", "answer 200", "kill"])
def test_what_becomes_of_the_worker_counts_though_its_client_waits_no_longer(end: str, fate: str) -> None:
    version = StubVersion(batch_time=1.0)
    job = ask(version, "a", 0.3)
    worker = version.workers[0]
    if end == "leaves":
        version.model.abandon(job)
    else:
        version.clock.advance(0.5)
        assert job.phase is JobPhase.ENDED

    if fate == "hang":
        worker.hang(HUNG)
    elif fate.startswith("answer"):
        version.engine.answer = lambda job: Reply(int(fate[-3:]), b"")
        version.clock.advance(1.0)
    else:
        {"die": worker.die, "crash": worker.crash, "kill": worker.kill}[fate]()

    bad = fate in ("hang", "die", "crash", "answer 500")
    assert judged(version) == ((1, 1) if bad else (1, 0) if fate == "answer 200" else (0, 0))
    assert job.ending is (Ending.LEFT if end == "leaves" else Ending.GIVEN_UP)


@pytest.mark.parametrize("hangs", [True, False])
def test_a_deadline_counts_where_a_worker_has_hung_with_the_request_but_not_where_it_was_stopped(hangs: bool) -> None:
    version = StubVersion(batch_size=2, max_delay=1.0, batch_time=5.0)
    jobs = [version.submit(name, seconds=2.0) for name in "ab"]
    for job in jobs:
        job.budget = TimeBudget(2.0, version.clock.now(), "a limit", by_client=True)
    version.clock.settle()

    if hangs:
        version.workers[0].hang(HUNG)
    else:
        version.workers[0].kill()
    version.clock.advance(5.0)

    assert [job.ending for job in jobs] == 2 * [Ending.OVERDUE if hangs else Ending.GIVEN_UP]
    assert judged(version)[1] == (2 if hangs else 0)


def test_a_slow_reader_makes_no_version_slow() -> None:
    version = StubVersion(batch_time=1.0)
    before = ask(version, "a", 60.0)
    version.clock.advance(1.0)
    job = ask(version, "b", 60.0)
    job.held_up = True
    version.clock.advance(30.0)

    assert before.ending is job.ending is Ending.ANSWERED
    assert judged(version) == (2, 0)
    assert sum(version.metrics.counts.latencies) == 1
    assert sum(version.metrics.latencies["client"].counts) == 1
    assert sum(version.metrics.fine.counts) == 2


class Rowed(StubVersion):
    """A version whose rows take a second, four at a time."""

    def __init__(self) -> None:
        super().__init__(continuous=True, batch_size=4)


def test_rows_that_clients_cancel_teach_nothing_and_vouch_for_nothing() -> None:
    version = Rowed()
    version.ask("a")
    version.clock.advance(2.0)
    learned = version.model.traffic.times.of(1)
    version.workers[0].crash()
    version.clock.advance(1.0)
    assert version.model.pool.crashes == 0, "no row was running"

    for number in range(50):
        job = version.ask(f"left {number}")
        version.model.abandon(job)
        version.clock.advance(0.001)

    assert version.model.traffic.times.of(1) == learned
    assert judged(version) == (1, 0)
    assert version.dispatcher.running == 0 and version.model.idle


def test_a_cancelled_row_is_no_proof_that_a_crash_is_over() -> None:
    version = Rowed()
    version.ask("a")
    version.workers[0].crash(retry=False)
    version.clock.advance(5.0)
    assert version.model.pool.crashes == 1

    version.model.abandon(version.ask("b"))
    version.clock.advance(0.1)

    assert version.model.pool.crashes == 1
    version.ask("c")
    version.clock.advance(2.0)
    assert version.model.pool.crashes == 0


@pytest.mark.parametrize("fate", [Fate.UNSTARTED, Fate.CANCELLED, Fate.STOPPED])
def test_nothing_is_known_of_what_no_worker_has_run_to_its_end(fate: Fate) -> None:
    version = StubVersion()
    job = version.client.job("a")
    job.ending = Ending.LEFT

    version.metrics.unheard(Outcome(job, None, fate), 1.0)

    assert judged(version) == (0, 0)
