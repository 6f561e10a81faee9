"""The figures of the load generator."""

import random
from pathlib import Path

import pytest

from tsctl.loadgen import tally
from tsctl.loadgen.tally import Latencies, ProcessorTime, Tally, bounds_between


def latencies_of(*seconds: float) -> Latencies:
    found = Latencies()
    for each in seconds:
        found.count_latency(each)
    return found


def test_percentiles_are_those_of_the_sorted_values_to_half_a_percent() -> None:
    dice = random.Random(1)
    values = [dice.lognormvariate(-4.0, 1.0) for _ in range(5000)]

    found = latencies_of(*values)

    for percent in (1, 50, 90, 95, 99, 99.9, 100):
        exact = sorted(values)[max(0, -(-int(50 * percent) // 1) - 1)]
        assert found.percentile(percent) == pytest.approx(exact, rel=0.005)


def test_the_extremes_and_the_mean_are_exact() -> None:
    found = latencies_of(0.001, 0.0023, 0.7)

    assert (found.least, found.most, found.count) == (0.001, 0.7, 3)
    assert found.sum / found.count == pytest.approx(0.2344333, rel=1e-5)
    assert found.percentile(100) <= 0.7
    assert found.percentile(0) >= 0.001
    assert (Latencies().percentile(50), Latencies().bars()) == (0.0, [])


@pytest.mark.parametrize(
    ("least", "most", "bounds"),
    [
        pytest.param(0.0058, 0.0112, [0.006, 0.0065, 0.007], id="one order of magnitude: even steps"),
        pytest.param(0.0005, 0.9, [0.0005, 0.001, 0.002], id="several: 1, 2, 5"),
        pytest.param(0.02, 0.02, [0.02], id="one value"),
    ],
)
def test_bounds_are_round(least: float, most: float, bounds: list[float]) -> None:
    found = bounds_between(least, most)

    assert found[: len(bounds)] == pytest.approx(bounds)
    assert found[-1] >= most
    assert found[-2:-1] < [most]
    assert len(found) <= 17


@pytest.mark.parametrize("spread", [1.0, 1.01, 3.0, 19.0, 21.0, 1e5])
@pytest.mark.parametrize("least", [1e-5, 0.00123, 0.999, 40.0])
def test_bounds_cover_everything_with_a_few_bars(least: float, spread: float) -> None:
    found = bounds_between(least, least * spread)

    assert found == sorted(set(found))
    assert 1 <= len(found) <= 20
    assert found[-1] >= least * spread * (1 - 1e-6)


def test_every_value_is_in_one_bar() -> None:
    dice = random.Random(2)
    found = latencies_of(*(dice.uniform(0.001, 0.1) for _ in range(1000)), 3.0)

    bars = found.bars()

    assert sum(count for _, count in bars) == 1001
    assert bars[-1] == (3.0, 1)  # far away: a bar of its own, not an axis of its own


def test_latencies_are_those_of_good_answers() -> None:
    tally = Tally()
    tally.answered(200, 10, 0.5)
    tally.answered(503, 10, 0.001)
    tally.explain(503, b'{"code": 503, "message": "The queue is full."}')
    tally.explain(503, b"another reason")
    tally.failed("closed")

    document = tally.document(2.0, ProcessorTime(used=1.0, waited=0.5))

    assert document["statuses"] == {"200": 1, "503": 1}
    assert document["reasons"] == {"503": "The queue is full."}, "the first"
    assert document["failures"] == {"closed": 1}
    assert (document["requests"], document["errors"]) == (3, 2)
    assert document["latency"]["p50"] == document["latency"]["max"] == 0.5
    assert document["requestsPerSecond"] == 0.5
    assert (document["generatorCpu"], document["generatorWaited"]) == (0.5, 0.25)


def test_what_comes_after_the_end_counts_as_latency_and_not_as_throughput() -> None:
    tally = Tally()
    tally.answered(200, 0, 0.1)
    tally.close(5.0)
    tally.answered(200, 0, 0.9)

    document = tally.document(1.0, ProcessorTime(0.0, 0.0))

    assert document["requestsPerSecond"] == 1.0
    assert document["latency"]["max"] == 0.9


@pytest.mark.parametrize(("text", "waited"), [("7 2500000000 3\n", 2.5), ("", 0.0), (None, 0.0)])
def test_a_kernel_may_count_the_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, waited: float
) -> None:
    if text is not None:
        (tmp_path / "schedstat").write_text(text)
    monkeypatch.setattr(tally, "_SCHEDSTAT", tmp_path / "schedstat")

    assert tally.look().waited == waited


def test_between_two_looks_is_what_was_added() -> None:
    found = ProcessorTime(3.0, 1.5) - ProcessorTime(1.0, 1.0)

    assert found == ProcessorTime(2.0, 0.5)
