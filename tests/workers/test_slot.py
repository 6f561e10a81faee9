"""The decisions for the slots of a pool, as arithmetic."""

import itertools
from collections.abc import Sequence

import pytest

from tests.kit.said import said_in
from tsctl.daemon.workers.slot import (
    LONGEST_BACKOFF,
    LONGEST_PAUSE,
    RESTART_LIMIT,
    RESTART_WINDOW,
    ReconcilePlan,
    Slot,
    SlotState,
    after_exit,
    plan,
)

EMPTY, STARTING, UP, BACKOFF, GAVE_UP = SlotState
NOW = 100.0


@said_in("plans.txt")
def test_a_plan(given: str) -> str:
    wanted, _, *states = given.split()
    made = plan([Slot(SlotState[name]) for name in states], int(wanted), NOW)
    assert made.wake_at is None
    return f"start {made.start}, retire {made.retire}, add {made.add}"


@pytest.mark.parametrize(
    ("retry_at", "start", "wake_at"),
    [
        pytest.param([NOW + 1], [], NOW + 1, id="it waits until it is time"),
        pytest.param([NOW], [0], None, id="and then starts"),
        pytest.param([NOW + 5, NOW + 2], [], NOW + 2, id="the next is looked for first"),
        pytest.param([NOW - 1, NOW + 2], [0], NOW + 2, id="one starts while the other waits"),
    ],
)
def test_a_slot_in_back_off(retry_at: Sequence[float], start: list[int], wake_at: float | None) -> None:
    slots = [Slot(BACKOFF, retry_at=at) for at in retry_at]

    assert plan(slots, len(slots), NOW) == ReconcilePlan(start, [], 0, wake_at)


@pytest.mark.parametrize("wanted", range(4))
def test_slots_are_retired_behind_those_to_be_started_the_last_first(wanted: int) -> None:
    for states in itertools.product(SlotState, repeat=3):
        todo = plan([Slot(state) for state in states], wanted, NOW)

        assert list(todo.retire) == sorted(todo.retire, reverse=True), states
        assert max(todo.start, default=-1) < min(todo.retire, default=3), states


def test_a_worker_that_had_answered_is_replaced_at_once() -> None:
    slot = Slot(UP, failures=[NOW - 1])

    assert after_exit(slot, answered=True, now=NOW) is False

    assert slot == Slot(EMPTY, worker=None, failures=[])


def test_early_exits_back_off_and_then_give_up() -> None:
    slot, waits, now = Slot(STARTING), [], NOW
    for _ in range(RESTART_LIMIT - 1):
        assert after_exit(slot, answered=False, now=now) is False
        waits.append(slot.retry_at - now)
        now = slot.retry_at

    assert after_exit(slot, answered=False, now=now) is True
    assert slot.state is GAVE_UP
    assert waits == [0.5, 1.0, 2.0, 4.0]
    assert len(slot.failures) == RESTART_LIMIT == 5 and RESTART_WINDOW == 60.0


def test_exits_that_are_long_past_do_not_count() -> None:
    slot = Slot(STARTING, failures=[0.0, 1.0, 2.0, 3.0])

    after_exit(slot, answered=False, now=1.0 + RESTART_WINDOW)

    assert slot.state is BACKOFF
    assert slot.failures == [2.0, 3.0, 1.0 + RESTART_WINDOW]


def test_five_exits_count_only_within_the_window() -> None:
    slot = Slot(STARTING)
    for number in range(20):
        after_exit(slot, answered=False, now=number * RESTART_WINDOW / 4)

        assert slot.state is BACKOFF


@pytest.mark.parametrize("early", [0, 4], ids=["a clean record", "one exit before the limit"])
def test_exits_with_a_started_batch_pause_ever_longer_up_to_five_seconds_and_never_give_up(early: int) -> None:
    slot, waits, now = Slot(STARTING, failures=[NOW] * early), [], NOW
    for _ in range(2000):  # so many that a power of two would be no float
        assert after_exit(slot, answered=False, now=now, busy=True) is False
        assert slot.state is BACKOFF
        waits.append(slot.retry_at - now)

    assert waits[:6] == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]
    assert max(waits) == LONGEST_PAUSE == 5.0
    assert slot.failures == [NOW] * early


def test_the_first_answer_ends_the_pauses() -> None:
    slot = Slot(STARTING)
    for _ in range(5):
        after_exit(slot, answered=False, now=NOW, busy=True)

    after_exit(slot, answered=True, now=NOW, busy=True)
    assert slot.state is EMPTY

    after_exit(slot, answered=False, now=NOW, busy=True)
    assert slot.retry_at == NOW + 0.5


@pytest.mark.parametrize("answered", [True, False])
@pytest.mark.parametrize("busy", [True, False])
def test_a_place_recovers_only_from_an_exit_with_a_started_batch(answered: bool, busy: bool) -> None:
    slot = Slot(UP)

    after_exit(slot, answered, NOW, busy)

    assert slot.recovering is busy


def test_no_wait_is_longer_than_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tsctl.daemon.workers.slot.RESTART_LIMIT", 50)
    slot = Slot(STARTING, failures=[NOW] * 20)

    after_exit(slot, answered=False, now=NOW)

    assert slot.retry_at == NOW + LONGEST_BACKOFF


@pytest.mark.parametrize("state", SlotState)
def test_only_a_slot_that_pauses_or_has_given_up_starts_anew(state: SlotState) -> None:
    slot = Slot(state, failures=[NOW], crashes=3)

    slot.forgive()

    if state in (BACKOFF, GAVE_UP):
        assert slot == Slot(EMPTY)
    else:
        assert slot == Slot(state, failures=[NOW], crashes=3)
