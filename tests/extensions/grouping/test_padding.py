"""Padding is told from bytes that cost by themselves, by the times of batches alone."""

import random
from collections.abc import Callable

import pytest

from tsctl.daemon.extensions.grouping.padding import WORTH_IT, Padding

Cost = Callable[[list[int]], float]


def learned(cost: Cost, noise: float, seed: int, spread: float = 0.6, most: int = 8, batches: int = 200) -> float:
    chance, padding = random.Random(seed), Padding()
    for _ in range(batches):
        lengths = [round(chance.lognormvariate(4.5, spread)) for _ in range(chance.randint(2, most))]
        padding.learn_batch(lengths, cost(lengths) * chance.uniform(1.0 - noise, 1.0 + noise))
    return padding.share


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
@pytest.mark.parametrize(
    "cost",
    [
        pytest.param(lambda lengths: 0.008 + len(lengths) * 0.0001 * max(lengths), id="all is padded"),
        pytest.param(lambda lengths: 0.02 + len(lengths) * 0.00002 * max(lengths), id="a part is"),
    ],
)
def test_padding_is_seen(cost: Cost, noise: float) -> None:
    assert all(learned(cost, noise, seed) >= WORTH_IT for seed in range(5))


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
@pytest.mark.parametrize(
    "cost",
    [
        pytest.param(lambda lengths: 0.008 + 0.0001 * sum(lengths), id="each is read by itself"),
        pytest.param(lambda lengths: 0.02 * len(lengths), id="all are brought to one size"),
        pytest.param(lambda lengths: 0.01, id="nothing matters"),
    ],
)
def test_where_nothing_is_padded_none_is_seen(cost: Cost, noise: float) -> None:
    assert max(learned(cost, noise, seed) for seed in range(20)) < 0.001


def test_lengths_that_hardly_differ_are_not_worth_an_order() -> None:
    assert learned(lambda lengths: 0.008 + len(lengths) * 0.0001 * max(lengths), 0.1, 1, spread=0.03) < WORTH_IT


def test_the_share_is_that_of_the_padding() -> None:
    share = learned(lambda lengths: len(lengths) * 0.0001 * max(lengths), 0.0, 1, batches=2_000)

    chance, padded, all_bytes = random.Random(1), 0, 0
    for _ in range(2_000):
        lengths = [round(chance.lognormvariate(4.5, 0.6)) for _ in range(chance.randint(2, 8))]
        chance.uniform(0.0, 1.0)
        padded += len(lengths) * max(lengths) - sum(lengths)
        all_bytes += len(lengths) * max(lengths)
    assert share == pytest.approx(padded / all_bytes, abs=0.05)
