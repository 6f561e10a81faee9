"""When rows are sent: at once, but after the input that has already arrived."""

from tsctl.daemon.batching.policies.collector import Facts, Send, Wait
from tsctl.daemon.batching.policies.table import RowByRow


def test_pending_input_is_read_once_before_jobs_are_sent_to_free_places() -> None:
    collector = RowByRow()

    assert collector.decide(Facts(1, 4), 1.0) == Wait(1.0)
    assert collector.decide(Facts(3, 4), 1.0) == Send(3, "place", over=3)
    assert collector.decide(Facts(1, 1), 2.0) == Send(1, "place")
    assert collector.decide(Facts(1, 4), 3.0) == Wait(3.0)


def test_more_jobs_than_places_need_no_further_input() -> None:
    assert RowByRow().decide(Facts(5, 4), 1.0) == Send(4, "place", over=4)


def test_nothing_more_is_read_while_the_version_is_being_stopped() -> None:
    assert RowByRow().decide(Facts(1, 4, stopping=True), 1.0) == Send(1, "place")


def test_pending_input_is_read_again_after_the_queue_was_drained() -> None:
    collector = RowByRow()
    collector.decide(Facts(1, 4), 1.0)

    collector.drained()

    assert collector.decide(Facts(1, 4), 2.0) == Wait(2.0)
