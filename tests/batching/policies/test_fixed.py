"""TorchServe's rule: from when a worker took the first job, wait up to the delay for company."""

import pytest

from tsctl.daemon.batching.policies.collector import SLACK, Facts, Send, Wait
from tsctl.daemon.batching.policies.table import Fixed
from tsctl.daemon.batching.traffic.times import BatchTimes


def facts(waiting: int, *, stopping: bool = False) -> Facts:
    return Facts(waiting, idle=1, stopping=stopping)


@pytest.mark.parametrize(
    ("waiting", "stopping", "decision"),
    [
        pytest.param(4, False, Send(4, "full"), id="a full batch goes at once"),
        pytest.param(9, False, Send(4, "full"), id="and never more than a full one"),
        pytest.param(3, False, Wait(10.1), id="less waits for company"),
        pytest.param(3, True, Send(3, "stopping"), id="but not when the version is being stopped"),
        pytest.param(9, True, Send(4, "full"), id="a stop sends full batches too"),
    ],
)
def test_a_decision(waiting: int, stopping: bool, decision: Send | Wait) -> None:
    collector = Fixed(batch_size=4, max_delay=0.1)

    assert collector.decide(facts(waiting, stopping=stopping), now=10.0) == decision


def test_a_batch_of_one_never_waits() -> None:
    assert Fixed(batch_size=1, max_delay=5.0).decide(facts(1), now=0.0) == Send(1, "full")


def test_no_delay_is_no_wait() -> None:
    assert Fixed(batch_size=4, max_delay=0.0).decide(facts(1), now=0.0) == Send(1, "delay")


def test_the_delay_counts_from_when_a_worker_took_the_first_job_not_from_its_arrival() -> None:
    collector = Fixed(batch_size=4, max_delay=0.1)

    assert collector.decide(facts(1), now=50.0) == Wait(50.1)
    assert collector.decide(facts(2), now=50.05) == Wait(50.1)
    assert collector.decide(facts(2), now=50.1) == Send(2, "delay")


def test_a_job_that_has_been_held_for_longer_than_the_collector_knows_waits_no_longer_for_that() -> None:
    collector = Fixed(batch_size=4, max_delay=0.1)
    collector.decide(facts(1), now=10.0)

    assert collector.decide(Facts(2, idle=1, held=9.95), now=10.01) == Wait(9.95 + 0.1)


@pytest.mark.parametrize(
    ("waiting", "now"),
    [pytest.param(1, 10.1, id="sent by its delay"), pytest.param(4, 10.02, id="sent full")],
)
def test_each_batch_has_a_delay_of_its_own(waiting: int, now: float) -> None:
    collector = Fixed(batch_size=4, max_delay=0.1)
    collector.decide(facts(1), now=10.0)
    assert isinstance(collector.decide(facts(waiting), now), Send)

    assert collector.decide(facts(1), now=10.2) == Wait(10.2 + 0.1)


def test_a_batch_whose_jobs_all_left_is_forgotten() -> None:
    collector = Fixed(batch_size=4, max_delay=0.1)
    collector.decide(facts(1), now=10.0)

    collector.drained()

    assert collector.decide(facts(1), now=10.09) == Wait(10.09 + 0.1)


@pytest.mark.parametrize(
    ("deadline", "decision"),
    [
        pytest.param(10.05, Wait(10.05 - 0.02 - SLACK), id="a deadline shortens the wait, by the time of a batch"),
        pytest.param(10.02, Send(2, "deadline"), id="or ends it"),
        pytest.param(19.0, Wait(10.1), id="one that is far away changes nothing"),
    ],
)
def test_a_deadline(deadline: float, decision: Send | Wait) -> None:
    times = BatchTimes()
    times.learn_batch(2, 0.02)

    decided = Fixed(4, 0.1, times).decide(Facts(2, idle=1, deadline=deadline), now=10.0)

    assert decided == decision
