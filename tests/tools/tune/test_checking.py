"""The settings that matter are tried, and what is seen there replaces what was simulated."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any

import pytest

from daemon.tools.tune.candidates import Candidate
from daemon.tools.tune.checking import FIRST, MOST, check, corrected, to_try
from daemon.tools.tune.frontier import Point


@dataclass(frozen=True, slots=True)
class Shown:
    throughput: float
    p50: float
    p99: float


def setting(batch_size: int, workers: int = 1) -> Candidate:
    return Candidate(workers, 1, batch_size, 0.01, "auto")


def point(batch_size: int, p99: float, workers: int = 1, capacity: float | None = None) -> Point:
    """A larger batch has more capacity, unless it is said."""
    return Point(setting(batch_size, workers), capacity or 100.0 * batch_size, 100.0, p99 / 2, p99, 1.0)


LADDER = [point(size, 0.01 * size) for size in range(1, 11)]  # all of the frontier


def run(points: list[Point], factors: dict[int, float], now: Candidate) -> tuple[list[Point], list[int]]:
    """Try settings that are so many times slower than simulated, by batch size; give the points, and what was tried."""
    tried: list[int] = []
    simulated = {each.setting: each for each in points}

    async def attempt(wanted: Candidate) -> Shown:
        tried.append(wanted.batch_size)
        was, factor = simulated[wanted], factors.get(wanted.batch_size, 1.0)
        return Shown(was.throughput / factor, was.p50 * factor, was.p99 * factor)

    return asyncio.run(check(points, now, None, attempt, lambda stage, **facts: None)), tried


def test_the_recommended_setting_and_the_one_there_is_are_tried_then_the_quickest() -> None:
    assert [each.batch_size for each in to_try(LADDER, setting(7), None)] == [1, 7, 2, 3]


def test_settings_of_as_many_workers_are_tried_one_after_the_other() -> None:
    points = [point(4, 0.01, workers=2), point(8, 0.02), point(16, 0.03, workers=2), point(32, 0.04)]

    assert [each.workers for each in to_try(points, setting(8), None)] == [1, 1, 2, 2]


def test_what_was_seen_is_what_is_told() -> None:
    found, tried = run(LADDER, {1: 1.01}, setting(7))

    assert len(tried) == 2 * FIRST
    assert found[0] == replace(LADDER[0], throughput=100 / 1.01, p50=0.00505, p99=0.0101, measured=True)
    assert [each.setting.batch_size for each in found if each.measured] == sorted(set(tried))


async def test_a_machine_that_becomes_slower_does_so_for_all_settings() -> None:
    """Each trial takes as many times longer as there were before: all come to the same mean."""
    trials = 0

    async def attempt(wanted: Candidate) -> Shown:
        nonlocal trials
        trials += 1
        return Shown(100.0 / trials, 0.01 * trials, 0.02 * trials)

    found = await check(LADDER, setting(4), None, attempt, lambda stage, **facts: None)

    seen = [each for each in found if each.measured]
    assert len(seen) == FIRST
    assert all((each.p50, each.p99) == pytest.approx((0.045, 0.09)) for each in seen)


async def test_a_setting_that_works_only_once_does_not_work() -> None:
    worked: set[Candidate] = set()

    async def attempt(wanted: Candidate) -> Shown | None:
        first = wanted not in worked
        worked.add(wanted)
        return Shown(100.0, 0.005, 0.01) if first or wanted.batch_size > 1 else None

    found = await check(LADDER, setting(4), None, attempt, lambda stage, **facts: None)

    assert not found[0].keeps_up
    assert not found[0].measured


def test_what_became_the_recommended_setting_is_tried_too() -> None:
    """The first four are far slower than simulated, on all workers that there are: all others are no better."""
    others = [point(16, 0.05, workers=2), point(64, 0.06, workers=3)]

    found, tried = run([*LADDER, *others], {1: 9.0, 2: 9.0, 3: 9.0, 4: 9.0}, setting(1))

    assert tried == [1, 2, 3, 4, 4, 3, 2, 1, 16, 16]
    assert found[10].measured


def test_trials_end_though_each_makes_another_setting_the_recommended_one() -> None:
    points = [point(2**workers, 0.01 * workers, workers) for workers in range(1, 12)]

    _, tried = run(points, {2**workers: 50.0 for workers in range(12)}, setting(2))

    assert len(tried) == 2 * MOST


def test_a_setting_that_was_not_tried_is_off_as_others_of_as_many_workers_were() -> None:
    points = [point(1, 0.01), point(2, 0.02), point(2, 0.02, workers=2)]

    found = corrected(points, {setting(1): Shown(80.0, 0.006, 0.015)})

    assert (found[1].throughput, found[1].p50, found[1].p99) == pytest.approx((80.0, 0.012, 0.03))
    assert not found[1].measured
    assert found[2] == points[2]


def test_a_setting_that_does_not_work_where_others_do_is_not_recommended() -> None:
    points = [point(2, 0.01), point(1, 0.01)]

    found = corrected(points, {setting(2): None, setting(1): Shown(80.0, 0.006, 0.015)})

    assert [each.keeps_up for each in found] == [False, True]


async def test_settings_of_which_none_works_stay_as_simulated() -> None:
    async def attempt(wanted: Candidate) -> None:
        return None

    told: list[dict[str, Any]] = []
    found = await check(LADDER, setting(1), None, attempt, lambda stage, **facts: told.append(facts))

    assert found == LADDER
    assert [(facts["done"], facts["total"]) for facts in told] == [(number, 8) for number in range(8)]
