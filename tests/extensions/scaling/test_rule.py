"""The rule for the number of workers, on facts alone."""

import random
from typing import Any

import pytest

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


@pytest.mark.parametrize(
    ("changes", "workers", "reason"),
    [
        pytest.param({}, 2, "enough", id="a load that two workers carry changes nothing"),
        pytest.param(
            {"waiting": 3.0}, 3, "predicted wait 150 ms > 100 ms", id="requests that wait too long want another worker"
        ),
        pytest.param(
            {"rate": 100.0, "arrivals": 500}, 3, "predicted wait 1642 ms > 100 ms",
            id="arrivals beyond what the workers answer want another, before a queue is seen",
        ),
        pytest.param({"rate": 55.0, "arrivals": 27}, 2, "enough", id="a few arrivals more may be chance"),
        pytest.param(
            {"waiting": 3.0, "most": 2}, 2, "predicted wait 150 ms > 100 ms, but maxWorkers is 2",
            id="the operator's largest number is not exceeded",
        ),
        pytest.param(
            {"waiting": 3.0, "obstacle": "3 workers share 2 cores"}, 2,
            "predicted wait 150 ms > 100 ms, but 3 workers share 2 cores", id="a worker without room is not added",
        ),
        pytest.param(
            {"waiting": 3.0, "measuring": True}, 2,
            "predicted wait 150 ms > 100 ms; the free memory of GPUs is being read",
            id="no worker is added before its room is known",
        ),
        pytest.param({"waiting": 9.0, "observed": 0.0}, 2, "enough", id="a queue while a worker starts is no reason"),
        pytest.param(
            {"waiting": 9.0, "trend": -5.0}, 2, "enough",
            id="a queue that is gone before a worker could start wants none",
        ),
        pytest.param({"waiting": 3.0, "failing": 1}, 2, "workers fail", id="workers that fail get no more"),
        pytest.param(
            {"waiting": 3.0, "batches": BatchModel(known=False)}, 2, "no batch was measured yet",
            id="nothing is predicted before a batch was measured",
        ),
        pytest.param({"wanted": 0, "ready": 0}, 0, "no workers are wanted", id="an unloaded version stays unloaded"),
        pytest.param({"wanted": 9}, 4, "the range is 1 to 4", id="a range that has become smaller holds at once"),
        pytest.param(
            {"rate": 5.0, "quiet_since": NOW - QUIET}, 1, "quiet for 60 s: predicted wait with one less 26 ms",
            id="after a quiet time a worker is taken away",
        ),
        pytest.param({"rate": 5.0, "quiet_since": NOW - QUIET + 1}, 2, "enough", id="and not before"),
        pytest.param(
            {"rate": 5.0, "quiet_since": LONG_AGO, "least": 2}, 2, "enough", id="the least number stays"
        ),
        pytest.param(
            {"rate": 0.0, "arrivals": 0, "quiet_since": LONG_AGO, "least": 0, "wanted": 1, "ready": 1}, 1, "enough",
            id="the last worker stays",
        ),
        pytest.param(
            {"rate": 5.0, "quiet_since": LONG_AGO, "stateful": True}, 2, "enough", id="a worker with sequences stays"
        ),
        pytest.param({"rate": 24.0, "quiet_since": LONG_AGO}, 2, "enough", id="a load too high for one less keeps two"),
        pytest.param(
            {"rate": 5.0, "waiting": 0.4, "quiet_since": LONG_AGO}, 2, "enough",
            id="a wait beyond half the target keeps two",
        ),
    ],
)  # fmt: skip
def test_how_many_workers_there_should_be(changes: dict[str, Any], workers: int, reason: str) -> None:
    decision = decide(facts(**changes), NOW)

    assert (decision.workers, decision.reason) == (workers, reason)


GIB = 1024**3
HOST = DeviceMemory(where="this machine", takes=GIB, left=100 * GIB)


@pytest.mark.parametrize(
    ("devices", "obstacle"),
    [
        pytest.param([], "", id="a device without numbers is no obstacle"),
        pytest.param([HOST], "", id="the host has room"),
        pytest.param(
            [HOST, DeviceMemory(where="GPU 1", takes=6 * GIB, left=2 * GIB)],
            "a worker takes 6 GiB, and GPU 1 has 2 GiB left", id="a GPU without room is one",
        ),
        pytest.param(
            [DeviceMemory(where="GPU 0", takes=GIB, left=GIB)], "a worker takes 1 GiB, and GPU 0 has 1 GiB left",
            id="a worker takes more while it runs",
        ),
        pytest.param(
            [DeviceMemory(where="GPU 0", takes=GIB, left=2 * GIB, loading=1)],
            "a worker takes 1 GiB, and GPU 0 has 2 GiB left", id="one that is loading there needs its memory, too",
        ),
        pytest.param([DeviceMemory(where="GPU 0", takes=GIB, left=3 * GIB, loading=1)], "", id="both have room"),
        pytest.param([DeviceMemory(where="GPU 0", takes=0, left=0)], "", id="an unknown need is no obstacle"),
    ],
)  # fmt: skip
def test_a_worker_needs_memory_on_each_of_its_devices(devices: list[DeviceMemory], obstacle: str) -> None:
    assert memory_obstacle(devices) == obstacle


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
