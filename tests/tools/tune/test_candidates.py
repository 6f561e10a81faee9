"""The settings that are tried."""

import pytest

from daemon.tools.tune.candidates import batch_sizes, delays, placements, settings, worker_counts


@pytest.mark.parametrize(
    ("most", "sizes"), [(1, [1]), (2, [1, 2]), (6, [1, 2, 4, 6]), (8, [1, 2, 4, 8]), (32, [1, 2, 4, 8, 16, 32])]
)
def test_batch_sizes_double_up_to_the_largest(most: int, sizes: list[int]) -> None:
    assert batch_sizes(most) == sizes


@pytest.mark.parametrize(
    ("cores", "now", "gpu", "counts"),
    [
        pytest.param(1, 1, False, [1], id="one core"),
        pytest.param(2, 1, False, [1, 2], id="two cores"),
        pytest.param(6, 1, False, [1, 2, 4, 6], id="six cores"),
        pytest.param(2, 3, False, [1, 2, 3], id="what there is now, even if that is too many"),
        pytest.param(2, 0, False, [1, 2], id="none now"),
        pytest.param(16, 1, True, [1, 2], id="a GPU"),
    ],
)
def test_workers_are_tried_up_to_one_for_each_core(cores: int, now: int, gpu: bool, counts: list[int]) -> None:
    assert worker_counts(cores, now, gpu) == counts


def test_workers_share_the_cores() -> None:
    assert placements(8, [4, 1, 2, 2]) == [(1, 8), (2, 4), (4, 2)]


def test_delays_are_round_numbers_around_what_a_batch_costs() -> None:
    assert delays("fixed", a=0.008, now=0.1) == pytest.approx([0.005, 0.01, 0.02])
    assert delays("auto", a=0.008, now=0.1) == pytest.approx([0.01, 0.05])


def test_where_no_delay_can_pay_the_one_there_is_stays() -> None:
    assert delays("fixed", a=0.0001, now=0.1) == [0.1]
    assert delays("greedy", a=0.008, now=0.1) == [0.1]


def test_every_size_is_tried_with_every_policy_but_batches_of_one_only_once() -> None:
    tried = list(settings(1, 2, [1, 8], a=0.008, delay_now=0.1))

    assert [each.policy for each in tried if each.batch_size == 1] == ["auto"]
    assert {each.policy for each in tried if each.batch_size == 8} == {"auto", "greedy", "fixed"}
    assert len(set(tried)) == len(tried)
