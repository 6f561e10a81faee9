"""Batch times are learned by size and by the longest job."""

import random

import pytest

from tsctl.daemon.batching.traffic.times import BatchTimes, PaddedTimes

A, PER_JOB, PER_BYTE = 0.008, 0.001, 0.0002


def seconds(count: int, longest: int, constant: int = 0) -> float:
    return A + count * (PER_JOB + PER_BYTE * (longest - constant))


def learned(sizes: str, constant: int = 0, batches: int = 300) -> tuple[BatchTimes, PaddedTimes]:
    chance = random.Random(sizes)
    times = BatchTimes()
    padded = PaddedTimes(times)
    for _ in range(batches):
        longest = round(max(chance.lognormvariate(4.5, 0.6) for _ in range(3))) + constant
        count = {"full": 8, "any": chance.randint(1, 8), "few long": max(1, min(8, 600 // (longest - constant)))}[sizes]
        noise = chance.uniform(0.95, 1.05)
        times.learn_batch(count, padded.learn_batch(count, longest, seconds(count, longest, constant) * noise))
    return times, padded


@pytest.mark.parametrize("constant", [0, 2000], ids=["text", "text in a document"])
@pytest.mark.parametrize("sizes", ["any", "few long"])
def test_the_time_of_a_batch_is_learned_by_its_size_and_longest_job(sizes: str, constant: int) -> None:
    _, padded = learned(sizes, constant)

    assert padded.per_byte == pytest.approx(PER_BYTE, rel=0.1)
    for count, longest in [(8, 100), (8, 300), (2, 300), (1, 400)]:
        predicted = padded.per_batch + count * padded.of_jobs([longest + constant])[0]
        assert predicted == pytest.approx(seconds(count, longest), rel=0.15)


def test_full_batches_alone_show_what_a_byte_costs() -> None:
    assert learned("full")[1].per_byte == pytest.approx(PER_BYTE, rel=0.1)


def test_batch_times_are_those_of_the_typical_longest_job() -> None:
    times, padded = learned("any")

    assert times.of(4) == pytest.approx(seconds(4, round(padded.typical)), rel=0.05)


def test_a_model_that_does_not_pad_costs_nothing_a_byte() -> None:
    times = BatchTimes()
    padded = PaddedTimes(times)
    for count, longest in [(1, 100), (8, 300), (4, 900), (2, 50)] * 100:
        times.learn_batch(count, padded.learn_batch(count, longest, A + count * PER_JOB))

    assert padded.per_byte == pytest.approx(0.0, abs=1e-7)
    assert (times.per_batch, times.per_job) == pytest.approx((A, PER_JOB), rel=1e-2)


def test_one_batch_that_took_a_hundred_times_too_long_changes_little() -> None:
    times, padded = learned("any")
    times.learn_batch(8, padded.learn_batch(8, 200, 100 * seconds(8, 200)))

    assert padded.per_byte == pytest.approx(PER_BYTE, rel=0.5)
    assert times.of(8) < 2 * seconds(8, round(padded.typical))


def test_jobs_of_one_length_show_nothing_of_a_byte() -> None:
    times = BatchTimes()
    padded = PaddedTimes(times)
    for count in [1, 8, 4, 2] * 25:
        times.learn_batch(count, padded.learn_batch(count, 0, A + count * PER_JOB))

    assert padded.per_byte == 0.0
    assert times.of(4) == pytest.approx(A + 4 * PER_JOB)


def test_while_all_batches_had_one_size_the_fixed_cost_is_at_most_that_of_empty_jobs() -> None:
    times, padded = learned("full")

    assert not times.spread
    assert padded.per_batch == pytest.approx(A + 8 * PER_JOB, rel=0.5)
    assert times.per_batch > 5 * padded.per_batch
    assert padded.per_batch + 8 * padded.of_jobs([150])[0] == pytest.approx(seconds(8, 150), rel=0.1)
