"""Calls that arrive together: what is held for whom, and for how long."""

from typing import Any, cast

import pytest

from tests.kit.clock import FakeClock
from tsctl.daemon.core.errors import DaemonError, Stopping
from tsctl.daemon.core.job import Job, JobPhase
from tsctl.daemon.extensions.grpc.waiting.arrivals import LONGEST, QUIET, Arrivals
from tsctl.daemon.models.version import ModelVersion


class Model:
    """Takes the place of a version: keeps what is submitted, or refuses it."""

    def __init__(self, error: DaemonError | None = None) -> None:
        self.submitted: list[Job] = []
        self.abandoned: list[Job] = []
        self._error = error

    def submit(self, job: Job) -> None:
        if self._error is not None:
            raise self._error
        self.submitted.append(job)

    def abandon(self, job: Job) -> None:
        self.abandoned.append(job)


def job() -> Job:
    return Job("1", [], [], 0.0, lambda reply: None)


class House:
    def __init__(self, error: DaemonError | None = None) -> None:
        self.clock = FakeClock()
        self.arrivals = Arrivals(self.clock)
        self.model = Model(error)
        self.refused: list[DaemonError] = []

    def arrive(self) -> Job:
        """Let the message of an accepted call come."""
        made = job()
        self.arrivals.message()
        self.arrivals.submit(cast(ModelVersion, self.model), made, self.refused.append)
        return made

    def heads(self, count: int) -> None:
        for _ in range(count):
            self.arrivals.head()

    def turns(self, count: int) -> None:
        for _ in range(count):
            self.clock.step()


@pytest.fixture
def house() -> House:
    return House()


def test_a_lone_call_is_submitted_at_once(house: House) -> None:
    for count in (1, 2):
        house.arrivals.head()
        house.arrive()
        assert len(house.model.submitted) == count
        house.arrivals.end_call()


def test_a_call_that_had_company_is_submitted_after_some_turns_of_the_loop(house: House) -> None:
    house.heads(2)
    house.arrivals.message()  # a call that leads to no job
    call = house.arrive()
    house.turns(QUIET - 1)
    assert house.model.submitted == []
    house.turns(1)

    assert house.model.submitted == [call]


def test_a_call_whose_message_is_on_its_way_is_awaited(house: House) -> None:
    house.heads(2)
    first = house.arrive()
    house.clock.settle()
    assert house.model.submitted == []
    second = house.arrive()
    house.clock.settle()

    assert house.model.submitted == [first, second]


def test_a_late_message_is_awaited_for_no_longer_than_that_and_only_once(house: House) -> None:
    house.heads(2)
    first = house.arrive()
    house.clock.advance(LONGEST * 0.9)
    assert house.model.submitted == []
    house.clock.advance(LONGEST * 0.2)
    assert house.model.submitted == [first]
    house.arrivals.head()
    second = house.arrive()
    house.clock.settle()

    assert house.model.submitted == [first, second]


def test_calls_that_come_without_end_are_submitted_in_time(house: House) -> None:
    for _ in range(10):
        house.heads(2)
        house.arrive()
        house.clock.advance(LONGEST / 4)

    assert len(house.model.submitted) >= 4


def test_the_message_of_a_call_that_leads_to_no_job_ends_the_waiting_for_it(house: House) -> None:
    house.heads(2)
    first = house.arrive()
    house.clock.settle()
    house.arrivals.message()
    house.clock.settle()

    assert house.model.submitted == [first]


def test_a_held_job_whose_client_leaves_is_not_submitted(house: House) -> None:
    house.heads(2)
    left = house.arrive()
    house.arrivals.abandon(cast(ModelVersion, house.model), left)
    house.arrivals.message()
    house.clock.settle()

    assert (house.model.submitted, house.model.abandoned, left.phase) == ([], [], JobPhase.ENDED)


def test_a_submitted_job_is_abandoned_at_its_model(house: House) -> None:
    house.arrivals.head()
    left = house.arrive()
    house.clock.settle()
    house.arrivals.abandon(cast(ModelVersion, house.model), left)

    assert house.model.abandoned == [left]


def test_a_refused_job_is_told_so_and_the_others_are_submitted() -> None:
    house, accepting = House(Stopping("no")), Model()
    house.heads(2)
    house.arrive()
    house.arrivals.message()
    other = job()
    house.arrivals.submit(cast(ModelVersion, accepting), other, cast(Any, house.refused.append))
    house.clock.settle()

    assert [str(error) for error in house.refused] == ["no"]
    assert accepting.submitted == [other]
