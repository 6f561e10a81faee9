"""Which size of batches `auto` makes: sizes are tried, their costs compared, and the best one is kept."""

import random
from collections import Counter
from collections.abc import Callable

import pytest

from tsctl.daemon.batching.traffic.best_size import AT_FIRST, COLD, EVERY, FULL, LOST, SHARE, BestSize
from tsctl.daemon.batching.traffic.times import BatchTimes

Curve = Callable[[int], float]
LONG = 800  # batches


class Workers:
    """Workers that always have more than enough to do.

    Args:
        curve: seconds of a batch of so many requests.
        waiting: requests, whenever a batch is made.
        noise: each batch takes so much longer or shorter, at most.
        first: the first limit; 0 for `most`.
        compiling: the first batch of each size takes so many times as long.
    """

    def __init__(
        self, curve: Curve, most: int, waiting: int = 100, noise: float = 0.05, first: int = 0, compiling: float = 1.0
    ) -> None:
        self.compiling = compiling
        self.times = BatchTimes()
        self.best = BestSize(most, self.times, first)
        self.curve, self.waiting, self.noise = curve, waiting, noise
        self.chance = random.Random(1)
        self.sent: Counter[int] = Counter()
        self.seconds = 0.0
        self.sizes = [self.best.size]

    def run(self, batches: int) -> int:
        """Run so many batches; return the size of most of the last tenth."""
        last: Counter[int] = Counter()
        for number in range(batches):
            count = min(self.best.next(self.waiting, 1), self.waiting)
            self.best.sent(count)
            seconds = self.curve(count) * self.chance.uniform(1.0 - self.noise, 1.0 + self.noise)
            if count not in self.sent:
                seconds *= self.compiling
            self.times.learn_batch(count, seconds)
            self.best.returned(count, seconds)
            self.sent[count] += 1
            self.seconds += seconds
            if number >= int(0.9 * batches):
                last[count] += 1
            if self.best.size != self.sizes[-1]:
                self.sizes.append(self.best.size)
        return last.most_common(1)[0][0]


CURVES: dict[str, tuple[Curve, int, set[int]]] = {
    "requests cost the same in any batch": (lambda n: 0.025 * n, 8, {1}),
    "texts are padded": (lambda n: 0.03 * n**1.3, 8, {1}),
    "a batch is slower for each request": (lambda n: 0.042 if n == 1 else 0.05 * n, 8, {1}),
    "larger batches no longer fit into the cache": (lambda n: 0.002 + 0.004 * n + 0.012 * max(0, n - 4), 16, {4}),
    "in between is best": (lambda n: 0.01 + 0.003 * n + 0.0004 * n * n, 32, {4, 6}),
    "a GPU with a knee": (lambda n: 0.01 + 0.002 * max(0, n - 8), 32, {8}),
    "a GPU": (lambda n: 0.008 + 0.0004 * n, 32, {32}),
    "a GPU in steps": (lambda n: 0.004 + 0.0004 * (1 << (n - 1).bit_length()), 32, {32}),
    "a handler that does next to nothing": (lambda n: 0.00001 * n, 64, {64}),
}


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("name", CURVES)
def test_the_size_with_the_best_rate_is_found(name: str, noise: float) -> None:
    curve, most, best = CURVES[name]
    workers = Workers(curve, most, noise=noise)

    found = workers.run(LONG)

    rate, optimum = found / curve(found), max(size / curve(size) for size in best)
    assert found in best or (noise and rate > 0.93 * optimum), workers.best


@pytest.mark.parametrize("name", CURVES)
def test_a_first_limit_leads_to_the_same_size(name: str) -> None:
    curve, most, best = CURVES[name]
    workers = Workers(curve, most, first=8)

    assert workers.run(LONG) in best, workers.best


@pytest.mark.parametrize("first", [0, 8])
@pytest.mark.parametrize("compiling", [1.5, 3.0, 20.0])
@pytest.mark.parametrize("name", CURVES)
def test_the_size_with_the_best_rate_is_found_where_the_first_batch_of_each_size_is_slow(
    name: str, compiling: float, first: int
) -> None:
    curve, most, best = CURVES[name]
    workers = Workers(curve, most, first=first, compiling=compiling)

    found = workers.run(LONG)

    rate, optimum = found / curve(found), max(size / curve(size) for size in best)
    assert rate > 0.94 * optimum, workers.best


@pytest.mark.parametrize("compiling", [3.0, 20.0])
def test_nothing_is_measured_by_the_first_batch_of_the_commonest_size_where_it_is_slow(compiling: float) -> None:
    workers = Workers(lambda n: 0.025 * n, 8, waiting=3, compiling=compiling)
    workers.run(COLD)
    workers.waiting = 100
    workers.run(6)

    assert workers.best.costs[8] == pytest.approx(0.025, rel=0.05)
    assert workers.run(LONG) == 1


@pytest.mark.parametrize(
    ("curve", "sizes"),
    [
        pytest.param(lambda n: 0.02 + 0.004 * n, [8, 16, 32], id="doubled while that pays"),
        pytest.param(lambda n: 0.001 + 0.02 * n, [8, 16, 8], id="back where it does not"),
        pytest.param(lambda n: 0.01 + 0.0004 * n * max(n, 16), [8, 16, 32, 16], id="also from the batch size"),
    ],
)
def test_a_first_limit_is_doubled_while_batches_of_twice_as_many_are_cheaper(curve: Curve, sizes: list[int]) -> None:
    workers = Workers(curve, 32, first=8, noise=0.0)

    workers.run(24)

    assert workers.sizes == sizes, workers.best


def test_a_first_limit_in_doubt_is_decided_by_twice_as_many_batches() -> None:
    best = BestSize(64, BatchTimes(), first=8)
    for _ in range(COLD + FULL):
        best.returned(8, 0.08)
    for seconds in (0.16,) * FULL + (0.14,) * (FULL - 1):
        best.returned(16, seconds)
        assert best.size == 16

    best.returned(16, 0.14)

    assert best.size == 32


def test_a_size_that_never_came_about_is_not_left_out_between_a_cheaper_and_a_dearer_one() -> None:
    curve, best = CURVES["larger batches no longer fit into the cache"][0], BestSize(8, BatchTimes())

    for size in (8, 3) * 50:
        best.returned(size, curve(size))

    assert best.size == 4


def test_a_smaller_size_is_taken_that_is_a_hundredth_cheaper_and_a_larger_one_is_not() -> None:
    best, chance = BestSize(6, BatchTimes()), random.Random(1)
    for cheaper in (5, 6):
        for size in (6, 5) * 400:
            best.returned(size, size * (0.099 if size == cheaper else 0.1) * chance.uniform(0.99, 1.01))

        assert best.size == 5


def test_where_few_wait_ones_are_taken_that_cost_as_much_as_all_larger_batches_that_come_about() -> None:
    workers = Workers(CURVES["requests cost the same in any batch"][0], 8, noise=0.1)
    for _ in range(2 * LONG):
        workers.waiting = workers.chance.choice((1, 1, 1, 1, 2, 2, 3, 4))
        workers.run(1)

    assert workers.best.size == 1


def test_where_few_wait_large_batches_stay_that_are_cheaper_by_what_larger_ones_of_few_save() -> None:
    workers = Workers(lambda n: 0.006 + 0.024 * n, 8, noise=0.1)
    for _ in range(2 * LONG):
        workers.waiting = workers.chance.choice((1, 1, 1, 1, 2, 2, 3, 4))
        workers.run(1)

    assert workers.best.size == 8


def test_ones_are_found_where_batches_that_wait_are_smaller_than_those_before() -> None:
    workers = Workers(CURVES["a batch is slower for each request"][0], 8, waiting=8)
    workers.run(COLD + EVERY)
    assert workers.best.size == 8

    workers.waiting = 4  # half of the clients have come to ask while the others wait for their answers
    workers.run(10 * LOST)

    assert workers.best.size == 1


def test_of_batches_that_take_seconds_few_are_needed_to_find_that_ones_are_cheaper() -> None:
    def batches(seconds: float) -> int:
        workers, number = Workers(lambda n: seconds * (n if n == 1 else 1.1 * n), 8, waiting=8), 0
        while workers.best.size > 1:
            number += 1
            workers.run(1)
        return number

    assert batches(0.7) < 2 * EVERY < 3 * EVERY <= batches(0.025)


def test_clients_of_more_than_one_batch_and_less_than_two_are_halved_where_that_costs_as_little() -> None:
    best = BestSize(6, BatchTimes())
    for size in (6, 4) * 50 + (5,) * 3:
        best.returned(size, size * {4: 0.101, 5: 0.104, 6: 0.1}[size])

    assert best.size == 6
    assert [best.even(clients) for clients in (1, 6, 8, 10, 12, 16)] == [6, 6, 4, 6, 6, 6]


def test_a_first_limit_waits_for_batches_that_reach_it() -> None:
    workers = Workers(lambda n: 0.02 + 0.004 * n, 32, waiting=7, first=8)

    workers.run(LONG)

    assert workers.best.size == 8


def test_batches_that_reach_a_first_limit_once_in_a_long_while_raise_nothing() -> None:
    workers = Workers(lambda n: 0.02 + 0.004 * n, 32, waiting=4, first=8)
    for _ in range(6):
        workers.run(8000)
        workers.best.returned(8, 0.052)

    assert workers.best.size == 8


@pytest.mark.parametrize(
    ("curve", "share", "sizes"),
    [
        pytest.param(lambda n: 0.02 + 0.004 * n, 11, [8, 16, 32], id="it is doubled where they are cheaper"),
        pytest.param(lambda n: 0.02 + 0.004 * n, 8, [8, 16], id="which the limit before let, too"),
        pytest.param(lambda n: 0.001 + 0.02 * n, 11, [8, 16], id="which says little of twice as many if they are not"),
    ],
)
def test_a_first_limit_goes_on_rising_while_a_share_of_the_clients_is_all_that_comes_together(
    curve: Curve, share: int, sizes: list[int]
) -> None:
    workers = Workers(curve, 32, waiting=share, first=8, noise=0.0)
    workers.best.share = share

    workers.run(30)

    assert workers.sizes == sizes, workers.best


def test_a_batch_size_that_grows_again_is_risen_to_or_allowed_at_once() -> None:
    workers = Workers(lambda n: 0.02 + 0.004 * n, 32, first=8, noise=0.0)
    workers.run(10)
    workers.best.limit(8, 8)
    workers.run(10)

    workers.best.limit(32, 8)
    assert workers.best.size == 8
    workers.run(24)
    assert workers.best.size == 32
    workers.best.limit(64)
    assert workers.best.size == 64


def test_where_another_rule_cuts_the_batches_there_is_no_first_limit() -> None:
    best = BestSize(32, BatchTimes(), 8)

    best.rest(resting=True)
    assert best.size == 32
    best.rest(resting=False)
    assert best.size == 8


def test_what_is_best_stays_while_the_machine_changes_its_speed() -> None:
    speed = 1.0
    workers = Workers(lambda n: speed * (0.01 + 0.002 * max(0, n - 8)), 32)
    workers.run(LONG)
    changes = workers.best.changes

    for speed in (1.4, 0.8, 2.0, 1.0):  # noqa: B007 - the curve reads it
        assert workers.run(LONG) == 8

    assert workers.best.changes == changes


def test_what_no_longer_holds_is_found_out() -> None:
    curve: list[Curve] = [lambda n: 0.025 * n]
    workers = Workers(lambda n: curve[0](n), 8)
    assert workers.run(LONG) == 1

    curve[0] = lambda n: 0.02 + 0.002 * n  # such as a GPU after a replacement by its like

    assert workers.run(20 * LONG) == 8


def test_once_the_sizes_are_known_tries_take_a_hundredth_of_the_time() -> None:
    curve, most, _ = CURVES["a GPU"]
    workers = Workers(curve, most)
    workers.run(LONG)
    workers.sent.clear()
    workers.seconds = 0.0

    workers.run(20 * LONG)

    tried = sum(count * curve(size) for size, count in workers.sent.items() if size != most)
    assert 0.0 < tried <= 1.1 * SHARE * workers.seconds


def test_no_size_is_tried_until_the_last_try_has_come_back_or_many_others_have_gone() -> None:
    best = BestSize(8, BatchTimes())
    for _ in range(COLD + EVERY):
        best.sent(best.next(7, 1))
        best.returned(8, 0.01)
    tries = []
    for number in range(2 * LOST):
        count = best.next(100, 1)
        if best.trying:
            tries.append(number)
        best.sent(count)
        if len(tries) >= 2:  # the first one never comes back
            best.returned(count, 0.01)

    assert tries[:2] == [0, LOST + 1]
    assert tries[2:4] == [LOST + 1 + AT_FIRST + 1, LOST + 1 + 2 * (AT_FIRST + 1)]


def test_a_size_is_tried_only_where_so_many_wait_and_no_other_worker_is_idle() -> None:
    workers = Workers(lambda n: 0.025 * n, 8, waiting=3)
    workers.run(LONG)
    assert max(workers.sent) == 3 and workers.sent[1]

    idle = BestSize(8, BatchTimes())
    for _ in range(10 * EVERY):
        assert idle.next(100, 2) == 8
        idle.sent(8)
        idle.returned(8, 0.1)


@pytest.mark.parametrize(
    "name", ["larger batches no longer fit into the cache", "in between is best", "a GPU with a knee", "a GPU in steps"]
)
def test_a_size_that_is_surely_dearer_is_not_tried_for_thousands_of_batches(name: str) -> None:
    curve, most, _ = CURVES[name]
    workers = Workers(curve, most)
    best = workers.run(LONG)
    workers.sent.clear()

    workers.run(20_000)

    dear = [size for size in workers.sent.elements() if curve(size) / size > 1.3 * curve(best) / best]
    assert len(dear) <= 4, workers.sent


def test_a_size_that_costs_as_much_as_the_present_one_is_tried_only_until_that_is_likely() -> None:
    workers = Workers(lambda n: 0.025 * n, 8)
    workers.run(400)
    before = workers.sent.total() - workers.sent[1]

    workers.run(4000)

    assert workers.sizes[-1] == 1
    assert workers.sent.total() - workers.sent[1] - before < 100


def test_only_sizes_near_the_present_one_are_tried_not_as_many_as_happen_to_wait() -> None:
    workers = Workers(lambda n: 0.002 + 0.004 * n + 0.012 * max(0, n - 4), 16)
    for waiting in (7, 10, 11, 13, 14, 15, 100) * 30:
        workers.waiting = waiting
        workers.run(10)

    tried = {size for size, count in workers.sent.items() if size not in (7, 10, 11, 13, 14, 15) or count > 40}
    assert workers.best.size == 4
    assert tried <= {1, 2, 3, 4, 6, 8, 12, 16}


@pytest.mark.parametrize(("share", "above"), [(32, True), (6, False)])
def test_no_size_is_tried_above_the_share_of_clients_who_are_split_over_workers(share: int, above: bool) -> None:
    workers = Workers(lambda n: 0.004 + 0.02 * n, 32, waiting=12)
    workers.best.share = share
    workers.run(64)

    tried = set(workers.sent) - {12}
    assert tried and (max(tried) > 6) is above


def test_a_share_ends_with_another_batch_size() -> None:
    workers = Workers(lambda n: 0.025 * n, 32)
    workers.best.share = 1
    workers.best.limit(16)

    assert workers.run(LONG) == 1


def test_another_batch_size_keeps_what_is_known() -> None:
    workers = Workers(lambda n: 0.01 + 0.002 * max(0, n - 8), 32)
    assert workers.run(LONG) == 8

    workers.best.limit(4)
    assert workers.run(LONG) == 4
    workers.best.limit(64)
    assert workers.run(5 * LONG) == 8


def test_the_costs_are_told_by_size() -> None:
    workers = Workers(lambda n: 0.025 * n, 8, noise=0.0)
    workers.run(LONG)

    assert workers.best.costs[1] == pytest.approx(0.025, rel=0.02)
    assert workers.best.costs[8] == pytest.approx(0.025, rel=0.02)


@pytest.mark.parametrize("seed", [2, 16, 19, 25, 37])
def test_fast_batches_stay_large_on_a_machine_that_is_slow_for_moments(seed: int) -> None:
    """These seeds made small batches, while batches close to each other counted as so many measurements."""
    chance = random.Random(seed)
    now, until, slower = 0.0, 0.0, 1.0

    def seconds(count: int) -> float:
        """Return the seconds of a batch: for 10 ms, in which many run, all are up to ten times as slow."""
        nonlocal now, until, slower
        if now >= until:
            until, slower = now + chance.expovariate(100.0), chance.uniform(1.0, 10.0)
        passed = slower * (0.0003 + 0.0002 * count)
        now += passed
        return passed

    workers = Workers(seconds, 8, noise=0.0)
    workers.run(4000)

    assert workers.sizes == [8], workers.best


@pytest.mark.parametrize("milliseconds", [0.3, 0.6, 1.2, 2.5])
def test_what_batches_gain_little_moves_the_limit_once_at_most(milliseconds: float) -> None:
    workers = Workers(lambda n: milliseconds / 1000 + 0.025 * n, 8, noise=0.02)

    workers.run(5 * LONG)

    assert len(workers.sizes) <= 2, workers.sizes
