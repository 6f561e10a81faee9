"""An upgrade follows its drawing; what it means for connections and signals is decided without a clock."""

import pytest

from tsctl.daemon.lifecycle.upgrade.states import TRANSITIONS, Drain, Step, UpgradeEvent, drain, stops_successor


def test_a_daemon_that_has_been_replaced_never_serves_again() -> None:
    reached = {Step.DRAINING}
    for _ in Step:
        reached |= {after for step in reached for after in TRANSITIONS[step].values()}

    assert reached == {Step.DRAINING, Step.STOPPING}


def test_the_place_is_taken_only_by_a_daemon_to_which_it_was_given() -> None:
    before = [step for step in Step if Step.DRAINING in TRANSITIONS[step].values()]

    assert before == [Step.HANDING]


def test_a_signal_waits_while_nobody_knows_who_the_daemon_is() -> None:
    assert [step for step in Step if UpgradeEvent.STOPPED not in TRANSITIONS[step]] == [Step.HANDING, Step.STOPPING]


@pytest.mark.parametrize("supervised", [False, True])
@pytest.mark.parametrize("step", Step)
def test_whom_a_signal_to_the_old_daemon_is_for(step: Step, supervised: bool) -> None:
    both = [Step.HANDING, Step.DRAINING] if supervised else [Step.HANDING]

    assert stops_successor(step, supervised=supervised) is (step in both)


@pytest.mark.parametrize(
    ("busy", "now", "expected"),
    [
        pytest.param(True, 10.0, Drain.WAIT, id="a connection may ask once more"),
        pytest.param(True, 39.9, Drain.WAIT, id="within the grace"),
        pytest.param(True, 40.0, Drain.CLOSE_IDLE, id="then only what is asked is answered"),
        pytest.param(True, 4000.0, Drain.CLOSE_IDLE, id="however long that takes"),
        pytest.param(False, 10.0, Drain.OVER, id="nobody is connected"),
    ],
)
def test_drain(busy: bool, now: float, expected: Drain) -> None:
    assert drain(busy, since=10.0, grace=30.0, now=now) is expected
