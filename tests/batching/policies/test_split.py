"""Over how many workers jobs are cut."""

import pytest

from tsctl.daemon.batching.policies.split import best_parts, parts_now, taken_now
from tsctl.daemon.batching.traffic.callers import Survival
from tsctl.daemon.batching.traffic.times import BatchTimes, Together

A, C = 0.050, 0.010


def together(cores: int, workers: int = 4, slower: float = 1.0, c: float = C) -> Together:
    """Everything is known of workers on so many cores."""
    times = BatchTimes()
    for size in (1, 8, 1, 8):
        times.learn_batch(size, slower * (A + c * size))
    known = Together(times)
    for _ in range(30):
        for busy in range(1, workers + 1):
            for size in range(1, 9):
                known.learn_batch(busy, size, slower * (A + c * size) * max(1.0, busy / cores))
    return known


@pytest.mark.parametrize(
    ("cores", "jobs", "workers", "parts"),
    [
        pytest.param(4, 1, 4, 1, id="one client needs one worker"),
        pytest.param(4, 8, 2, 2, id="eight of two workers: 4 + 4"),
        pytest.param(4, 8, 4, 4, id="eight of four: 2 + 2 + 2 + 2"),
        pytest.param(4, 16, 2, 2, id="two full batches"),
        pytest.param(1, 8, 4, 1, id="on one core all travel together"),
        pytest.param(1, 16, 4, 1, id="even if they do not fit"),
        pytest.param(2, 8, 4, 2, id="on two cores in two batches"),
    ],
)
def test_clients_that_come_again_are_cut_where_most_are_answered(
    cores: int, jobs: int, workers: int, parts: int
) -> None:
    assert best_parts(together(cores), jobs, workers, 8, Survival())[0] == parts


def test_batches_that_take_minutes_are_cut_as_well() -> None:
    assert best_parts(together(4, slower=1000.0), 8, 4, 8, Survival()) == (4, 2)


@pytest.mark.parametrize(
    ("turnaround", "share"),
    [
        pytest.param(0.0001, 8, id="they are back at once: all travel"),
        pytest.param(0.08, 6, id="some are on their way: the others keep the workers busy"),
        pytest.param(10.0, 8, id="nobody comes again within a batch"),
    ],
)
def test_while_clients_are_on_their_way_back_batches_of_the_others_are_smaller(turnaround: float, share: int) -> None:
    turnarounds = Survival()
    for _ in range(100):
        turnarounds.add_time(turnaround)

    assert best_parts(together(4), 16, 2, 8, turnarounds) == (2, share)


def test_shares_that_wait_for_a_worker_are_no_faster_than_the_workers_run_them_in_turn() -> None:
    turnarounds = Survival()
    for _ in range(100):
        turnarounds.add_time(0.03)

    assert best_parts(together(4), 16, 4, 8, turnarounds) == (4, 4)  # six shares of three: two of them wait


@pytest.mark.parametrize(
    ("turnaround", "plan"),
    [
        pytest.param(0.01, (3, 4), id="hardly any time passes on the way back: four each"),
        pytest.param(0.1, (3, 3), id="while some are on their way, a fourth share of three is run"),
    ],
)
def test_clients_are_cut_unevenly_only_where_the_way_back_takes_much_of_a_batch(
    turnaround: float, plan: tuple[int, int]
) -> None:
    turnarounds, known = Survival(), together(4, c=0.1)
    for _ in range(100):
        turnarounds.add_time(turnaround)
        known.learn_batch(3, 3, 0.9 * (A + 3 * 0.1))  # seems a tenth faster, by chance

    assert best_parts(known, 12, 3, 8, turnarounds) == plan


@pytest.mark.parametrize(
    ("cores", "idle", "busy", "rate", "parts"),
    [
        pytest.param(4, 2, 0, 0.0, 2, id="nobody else comes: cut over all"),
        pytest.param(4, 2, 0, 1000.0, 1, id="many come: one worker is kept for them"),
        pytest.param(4, 4, 0, 1000.0, 3, id="of four too"),
        pytest.param(1, 2, 0, 0.0, 1, id="on one core cutting ends nobody sooner"),
    ],
)
def test_strangers_are_cut_where_they_are_answered_sooner(
    cores: int, idle: int, busy: int, rate: float, parts: int
) -> None:
    assert parts_now(together(cores), 8, idle, busy, rate) == parts


@pytest.mark.parametrize(
    ("waiting", "workers", "arriving", "taken"),
    [
        pytest.param(8, 4, 0.0, 2, id="hardly anybody comes: a worker takes its share of those that wait"),
        pytest.param(8, 4, 2.0, 3, id="some come: a worker that takes all would be away for long"),
        pytest.param(14, 2, 1.0, 7, id="so many wait that its share is more"),
        pytest.param(8, 2, 4.9, 8, id="many come: smaller batches would hardly keep up"),
        pytest.param(8, 2, 100.0, 8, id="more come than the workers can answer"),
        pytest.param(20, 2, 1.0, 8, id="its share is more than a batch"),
        pytest.param(1, 2, 1.0, 1, id="one waits"),
    ],
)
def test_a_worker_leaves_strangers_to_the_next_one_so_that_no_batch_is_long(
    waiting: int, workers: int, arriving: float, taken: int
) -> None:
    assert taken_now(together(4), waiting, 8, workers, arriving) == taken


def test_none_are_left_where_a_batch_takes_as_long_whatever_its_size() -> None:
    assert taken_now(together(4, c=0.0), 8, 8, 2, arriving=0.5) == 8
