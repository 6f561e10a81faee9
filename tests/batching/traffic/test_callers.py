"""The regular callers, and which of them are present."""

import pytest

from tsctl.daemon.batching.traffic.callers import Callers, Survival
from tsctl.daemon.core.job import Caller, Job


def law(seconds: float) -> Survival:
    law = Survival()
    law.add_time(seconds)
    return law


class Home:
    def left(self, caller: Caller) -> None:
        self.callers.left(caller)

    def __init__(self) -> None:
        self.callers = Callers(self)

    def arrive(self, caller: Caller | None, now: float = 0.0) -> Job:
        job = Job("", (), (), now, lambda reply: None, caller=caller)
        self.callers.arrived(job)
        return job

    def serve(self, caller: Caller, now: float = 0.0) -> None:
        job = self.arrive(caller, now)
        self.callers.taken(job)
        self.callers.ended(job, now)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Regulars, those of them that are here, and waiting jobs of others."""
        return self.callers.regulars, self.callers.present, self.callers.strangers


@pytest.mark.parametrize("pipelined", [False, True])
def test_a_connection_is_a_strangers_until_its_second_request_comes(pipelined: bool) -> None:
    home, caller = Home(), Caller()

    first = home.arrive(caller)
    assert home.counts == (0, 0, 1)
    if not pipelined:
        home.callers.taken(first)
        home.callers.ended(first, 0.0)
        assert home.counts == (0, 0, 0)
    home.arrive(caller)

    assert home.counts == (1, 1, 0), "connections count, not jobs"


def test_a_regular_is_here_while_its_job_waits_and_while_it_runs() -> None:
    home, caller = Home(), Caller()
    home.serve(caller)
    job = home.arrive(caller)

    home.callers.taken(job)
    assert home.counts == (1, 1, 0)
    home.callers.ended(job, 0.0)

    assert home.counts == (1, 0, 0)


def test_a_job_without_a_connection_is_a_strangers() -> None:
    home = Home()

    job = home.arrive(None)
    assert home.counts == (0, 0, 1) and home.callers.open == 0
    home.callers.taken(job)
    home.callers.ended(job, 0.0)

    assert home.counts == (0, 0, 0)


def test_a_connection_that_closes_is_forgotten_and_its_waiting_job_is_a_strangers() -> None:
    home, caller = Home(), Caller()
    home.serve(caller)
    home.arrive(caller)

    caller.close()

    assert home.counts == (0, 0, 1) and home.callers.open == 0


def test_a_connection_that_goes_to_another_version_is_regular_at_neither() -> None:
    here, there, caller = Home(), Home(), Caller()
    here.serve(caller)
    here.serve(caller)

    there.serve(caller)

    assert here.counts == there.counts == (0, 0, 0)
    assert (here.callers.open, there.callers.open) == (0, 1)


def test_a_regular_that_is_silent_for_long_is_none_and_is_one_again_with_its_next_request() -> None:
    home, caller = Home(), Caller()
    home.serve(caller, now=0.0)
    home.serve(caller, now=0.1)

    home.callers.forget_silent(now=1.0, turnarounds=law(0.001))
    assert home.counts == (1, 0, 0)
    home.callers.forget_silent(now=1.2, turnarounds=law(0.001))
    assert home.counts == (0, 0, 0)
    home.arrive(caller, now=5.0)

    assert home.counts == (1, 1, 0)


def test_how_long_is_long_depends_on_how_fast_clients_come_back() -> None:
    home, caller = Home(), Caller()
    home.serve(caller, now=0.0)
    home.serve(caller, now=0.1)

    home.callers.forget_silent(now=4.0, turnarounds=law(0.4))

    assert home.counts == (1, 0, 0)


def test_a_regular_that_waits_for_us_is_not_silent() -> None:
    home, caller, other = Home(), Caller(), Caller()
    for each in (caller, other):
        home.serve(each)
    home.arrive(caller, now=0.0)
    home.serve(other, now=0.0)

    home.callers.forget_silent(now=60.0, turnarounds=Survival())

    assert home.counts == (1, 1, 0)


def test_a_job_that_came_back_waits_again() -> None:
    home, caller = Home(), Caller()
    job = home.arrive(caller)
    home.callers.taken(job)

    home.callers.queued(job)

    assert home.counts == (0, 0, 1)
