"""A worker's batches in flight: which one has started, and how the others return."""

import pytest

from tests.kit.client import Client
from tsctl.daemon.core.arena import Arena, Lease
from tsctl.daemon.core.job import Batch, Fate, Reply
from tsctl.daemon.workers.inflight import InFlight

LATE = Reply(500, b"late")


def batch(number: int, size: int = 2) -> Batch:
    return Batch(number, [Client().job(f"{number}.{place}") for place in range(size)], "full")


def in_flight(*batches: Batch) -> InFlight:
    made = InFlight(capacity=len(batches))
    for each in batches:
        made.add_batch(each)
    return made


def given_back(held: InFlight) -> list[tuple[int, bool, Fate]]:
    """Of each batch: its id, whether it may run again, its fate."""
    back = held.give_back(retry=False, reason="killed", fate=Fate.KILLED)
    return [(each.id, outcomes[0].retry, outcomes[0].fate) for each, outcomes in back]


@pytest.mark.parametrize(("sizes", "unstarted"), [([], 0), ([3], 0), ([3, 4], 4), ([3, 4, 5], 9)])
def test_all_but_the_first_wait(sizes: list[int], unstarted: int) -> None:
    held = in_flight(*(batch(number, size) for number, size in enumerate(sizes, 1)))

    assert held.unstarted == unstarted
    assert (held.running and held.running.id) == (1 if sizes else None)


@pytest.mark.parametrize(
    ("sizes", "begun", "expected"),
    [
        pytest.param([1], [], {1: Fate.CRASHED_ALONE}, id="one alone"),
        pytest.param([2], [], {1: Fate.CRASHED}, id="two in a batch share it"),
        pytest.param(
            [1, 1], [], {1: Fate.CRASHED_ALONE, 2: Fate.UNSTARTED}, id="what waits behind it has nothing to do with it"
        ),
        pytest.param([1, 1], [2], {1: Fate.CRASHED, 2: Fate.CRASHED}, id="but for one that has begun beside it"),
    ],
)
def test_whom_the_end_of_a_worker_may_be_due_to(sizes: list[int], begun: list[int], expected: dict[int, Fate]) -> None:
    held = in_flight(*(batch(number, size) for number, size in enumerate(sizes, 1)))
    for number in begun:
        held.start(number)

    back = held.give_back(retry=True, reason="it exited with code 7", fate=Fate.CRASHED)

    assert {each.id: outcome.fate for each, outcomes in back for outcome in outcomes} == expected


def test_a_hand_is_busy_while_its_worker_has_started_something() -> None:
    held = in_flight(batch(1), batch(2))
    assert held.busy

    held.expire(retry=False, reply=LATE)
    list(held.give_back(retry=False, reason="killed", fate=Fate.LOST))

    assert not held and held.busy, "it still runs what is overdue"
    assert not InFlight(2).busy


@pytest.mark.parametrize(
    ("size", "retry", "again"),
    [
        pytest.param(2, True, True, id="jobs of a batch of several that is late may run again"),
        pytest.param(1, True, False, id="one that was alone may not"),
        pytest.param(2, False, False, id="nor may those of a handler that must not run twice"),
    ],
)
def test_who_may_run_again_after_the_response_timeout(size: int, retry: bool, again: bool) -> None:
    _, outcomes = in_flight(batch(1, size)).expire(retry, LATE)

    assert [(each.reply, each.fate, each.retry) for each in outcomes] == [(LATE, Fate.LATE, again)] * size


def test_it_holds_no_more_than_its_capacity() -> None:
    held = in_flight(batch(1))

    with pytest.raises(AssertionError):
        held.add_batch(batch(2))


def test_of_a_worker_that_says_so_several_have_started() -> None:
    held = in_flight(batch(1), batch(2), batch(3))

    held.start(2)

    assert held.unstarted == 2
    assert held.find(2) is not None and held.find(3) is None
    assert given_back(held) == [(3, True, Fate.UNSTARTED), (2, False, Fate.KILLED), (1, False, Fate.KILLED)]


def test_behind_one_that_is_overdue_nothing_has_started() -> None:
    held = in_flight(batch(1), batch(2))

    expired, _ = held.expire(retry=False, reply=LATE)

    assert expired.id == 1
    assert held.running is None and held.unstarted == 2
    assert given_back(held) == [(2, True, Fate.UNSTARTED)]


def test_what_a_worker_says_of_a_batch_that_it_does_not_have_is_ignored() -> None:
    held = InFlight(capacity=2)
    held.start(2)

    held.add_batch(batch(1))
    held.add_batch(batch(2))

    assert given_back(held) == [(2, True, Fate.UNSTARTED), (1, False, Fate.KILLED)]


def test_what_had_started_beside_one_that_is_overdue_has_started() -> None:
    held = in_flight(batch(1), batch(2))
    held.start(1)
    held.start(2)

    held.expire(retry=False, reply=LATE)

    assert held.find(1) is None
    assert given_back(held) == [(2, False, Fate.KILLED)]


def lease(arena: Arena) -> Lease:
    taken = arena.take(4096)
    assert taken is not None
    return taken


def test_memory_that_a_handler_still_uses_stays_leased_after_its_batch() -> None:
    arena = Arena(1 << 20)
    held, first, second = InFlight(capacity=2), lease(arena), lease(arena)
    held.add_batch(batch(1), [first, second])
    held.add_batch(batch(2), [lease(arena)])
    offset, size = second.offset, len(second)
    del first, second

    held.finish([offset])
    assert held.leased == 2 * size  # of the second value, and of the batch that runs now
    held.finish([offset])
    assert held.leased == arena.used == size
    held.add_batch(batch(3), [])
    held.finish([])
    assert held.leased == arena.used == 0


def test_a_worker_keeps_only_what_it_was_given() -> None:
    arena = Arena(1 << 20)
    held = InFlight(capacity=1)
    held.add_batch(batch(1), [lease(arena)])

    held.finish([10**9])

    assert arena.used == 0


def test_memory_of_an_overdue_batch_may_be_kept_too_until_its_process_has_ended() -> None:
    arena = Arena(1 << 20)
    held, kept = InFlight(capacity=1), lease(arena)
    held.add_batch(batch(1), [kept])
    offset = kept.offset
    del kept

    held.expire(retry=False, reply=LATE)
    held.settle([offset])
    assert arena.used == held.leased > 0
    held.end_all_leases()

    assert arena.used == held.leased == 0


def test_memory_of_an_overdue_batch_is_free_when_the_worker_has_finished_it() -> None:
    arena = Arena(1 << 20)
    held = InFlight(capacity=1)
    held.add_batch(batch(1), [lease(arena)])

    held.expire(retry=False, reply=LATE)
    assert arena.used == held.leased > 0
    held.settle()

    assert arena.used == held.leased == 0


def test_memory_of_each_that_had_started_is_leased_until_its_worker_has_done_it() -> None:
    arena = Arena(1 << 20)
    held = InFlight(capacity=2)
    for number in (1, 2):
        held.add_batch(batch(number), [lease(arena)])
        held.start(number)
    both = arena.used

    held.expire(retry=False, reply=LATE)
    list(held.give_back(retry=False, reason="killed", fate=Fate.KILLED))
    assert arena.used == held.leased == both
    held.end_all_leases()

    assert arena.used == held.leased == 0
