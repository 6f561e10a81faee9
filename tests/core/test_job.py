"""A job ends exactly once, and returns at most once."""

import math
from collections.abc import Callable

import pytest

from tests.kit.client import Client
from tsctl.daemon.core.job import MAX_ATTEMPTS, TRANSITIONS, Job, JobEvent, JobPhase, Param, Reply, TimeBudget
from tsctl.daemon.core.states import IllegalTransition

REPLY = Reply(200, b"yes")
MOVES: dict[JobEvent, Callable[[Job], None]] = {
    JobEvent.SEND: Job.send,
    JobEvent.RETURN: Job.give_back,
    JobEvent.ANSWER: lambda job: job.answer(REPLY),
    JobEvent.EXPIRE: lambda job: job.expire(REPLY),
    JobEvent.ABANDON: Job.abandon,
}
PATHS: dict[JobPhase, list[JobEvent]] = {
    JobPhase.QUEUED: [],
    JobPhase.SENT: [JobEvent.SEND],
    JobPhase.ENDED: [JobEvent.SEND, JobEvent.ANSWER],
}


def job_in(phase: JobPhase, client: Client) -> Job:
    job = client.job("j")
    for event in PATHS[phase]:
        MOVES[event](job)
    client.replies.clear()
    return job


@pytest.mark.parametrize("event", JobEvent)
@pytest.mark.parametrize("phase", JobPhase)
def test_a_job_follows_the_drawing_and_nothing_else(phase: JobPhase, event: JobEvent) -> None:
    client = Client()
    job = job_in(phase, client)

    if event in TRANSITIONS[phase]:
        MOVES[event](job)
        assert job.phase is TRANSITIONS[phase][event]
    else:
        with pytest.raises(IllegalTransition, match=f"{event.name} in {phase.name}"):
            MOVES[event](job)
        assert job.phase is phase
        assert client.replies == []


def test_an_ended_job_has_no_way_on() -> None:
    assert TRANSITIONS[JobPhase.ENDED] == {}


def test_a_job_returns_once() -> None:
    job = Client().job("j")
    job.send()
    job.give_back()
    job.send()

    assert job.attempt == MAX_ATTEMPTS == 2
    assert not job.may_return
    with pytest.raises(IllegalTransition, match="RETURN in SENT after attempt 2"):
        job.give_back()


def test_an_answer_is_delivered_and_an_abandoned_job_tells_nobody() -> None:
    client = Client()
    client.job("answered").answer(REPLY)
    client.job("expired").expire(REPLY)
    client.job("abandoned").abandon()

    assert client.replies == [("answered", REPLY), ("expired", REPLY)]


def test_a_budget_counts_from_the_headers_not_from_the_arrival() -> None:
    client = Client()

    assert client.job("j", arrived=7.0, budget=TimeBudget(0.5, 6.9, "the test")).deadline == 7.4
    assert client.job("j", arrived=7.0).deadline == math.inf


def test_its_size_is_that_of_all_its_parameters() -> None:
    params = [Param("a", "", b"four"), Param("b", "", b""), Param("c", "", b"x" * 100)]

    assert Job("j", params, [], 0.0, lambda reply: None).size == 104
