"""The rule for the number of workers, on facts alone."""

import json
import random
from typing import Any

import pytest

from tests.kit.said import said_in
from tsctl.daemon.extensions.scaling.facts import BatchModel, DeviceMemory, ScalingChange, ScalingFacts
from tsctl.daemon.extensions.scaling.rule import (
    LONGEST_QUIET,
    QUIET,
    clamped,
    decide,
    is_quiet,
    memory_obstacle,
    quiet_time,
)

NOW = 1000.0
LONG_AGO = NOW - LONGEST_QUIET - 1.0
# Batches of 4 take 160 ms: a worker answers 25 requests a second.
BATCHES = BatchModel(per_batch=0.08, per_job=0.02, size=4)


def facts(**changes: Any) -> ScalingFacts:
    """Return facts of two ready workers at 40 % of what they can answer, and nothing waits."""
    values: dict[str, Any] = {
        "target": 0.1, "least": 1, "most": 4, "wanted": 2, "ready": 2, "rate": 20.0, "arrivals": 100, "observed": 5.0,
        "batches": BATCHES,
    }  # fmt: skip
    return ScalingFacts(**values | changes)


@said_in("rule.txt")
def test_how_many_workers_there_should_be(given: str) -> str:
    changes = json.loads(given)
    if "batches" in changes:
        changes["batches"] = BatchModel(**changes["batches"])
    decision = decide(facts(**changes), NOW)
    return f"{decision.workers}: {decision.reason}"


@said_in("obstacles.txt")
def test_a_worker_needs_memory_on_each_of_its_devices(given: str) -> str:
    return memory_obstacle([DeviceMemory(**each) for each in json.loads(given)])


@pytest.mark.parametrize(
    ("chosen", "least", "most", "expected"),
    [(0, 2, 4, 0), (1, 2, 4, 2), (3, 2, 4, 3), (9, 2, 4, 4), (1, 0, 4, 1), (5, 0, 4, 4)],
)
def test_the_operators_range_holds_and_an_unloaded_version_stays_so(
    chosen: int, least: int, most: int, expected: int
) -> None:
    assert clamped(chosen, least, most) == expected


@pytest.mark.parametrize("seed", range(200))
def test_whatever_the_facts_the_number_changes_by_one_within_the_range(seed: int) -> None:
    chance = random.Random(seed)
    least = chance.randint(0, 4)
    most = chance.randint(max(1, least), 8)
    drawn = facts(
        least=least, most=most, wanted=chance.randint(max(1, least), most), ready=chance.randint(0, 8),
        rate=chance.choice((0.0, chance.expovariate(0.02))), arrivals=chance.randint(0, 1000),
        waiting=chance.choice((0.0, chance.expovariate(0.1))), trend=chance.gauss(0.0, 5.0),
        observed=chance.choice((0.0, 5.0)), target=chance.choice((0.001, 0.1, 10.0)),
        quiet_since=chance.choice((None, NOW, LONG_AGO)), failing=chance.choice((0, 0, 1)),
        batches=BatchModel(per_batch=chance.random(), per_job=chance.random(), size=chance.randint(1, 32)),
    )  # fmt: skip
    decision = decide(drawn, NOW)

    assert max(1, least) <= decision.workers <= most
    assert abs(decision.workers - drawn.wanted) <= 1


def swings(count: int, apart: float) -> list[ScalingChange]:
    """Return so many changes 2 → 1 → 2 …, `apart` seconds from each other, the last one just now."""
    numbers = [(2, 1) if index % 2 == 0 else (1, 2) for index in range(count)]
    return [ScalingChange(NOW - apart * (count - 1 - index), *pair) for index, pair in enumerate(numbers)]


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        pytest.param([], QUIET, id="at first"),
        pytest.param(swings(2, 30.0), 2 * QUIET, id="a worker is wanted back soon: twice as long"),
        pytest.param(swings(4, 30.0), 4 * QUIET, id="and again"),
        pytest.param(swings(40, 30.0), LONGEST_QUIET, id="up to the longest"),
        pytest.param(swings(2, 300.0), QUIET, id="not if it is wanted back much later"),
        pytest.param(
            [ScalingChange(NOW - 1000.0, 2, 1), ScalingChange(NOW - 990.0, 1, 2)], QUIET, id="short again after calm"
        ),
    ],
)
def test_the_quiet_time_grows_with_each_change_that_is_taken_back(
    history: list[ScalingChange], expected: float
) -> None:
    assert quiet_time(history, NOW) == expected


def test_it_is_quiet_only_while_all_workers_are_observed() -> None:
    assert is_quiet(facts(rate=5.0))
    assert not is_quiet(facts(rate=5.0, observed=0.0))
