"""Versions whose batches are formed of requests with similar lengths."""

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from tests.api.house import House
from tests.kit.version import StubVersion
from tsctl.daemon.core.job import Job
from tsctl.daemon.declarations import VersionView
from tsctl.daemon.extensions.grouping.grouping import LengthGrouping
from tsctl.daemon.extensions.grouping.service import GroupingService
from tsctl.extensions.grouping import COMMAND_LINE


def padding(jobs: Sequence[Job]) -> float:
    """Return the seconds of a batch that is padded to its longest job."""
    return 0.008 + len(jobs) * 0.0001 * max(job.size for job in jobs)


def follow(bench: StubVersion) -> None:
    bench.model.tell_services = partial(GroupingService().follow, bench.model)
    bench.model.tell_services()


def version(**settings: object) -> StubVersion:
    """Return a version that has learned its batch times, and is idle."""
    bench = StubVersion(batch_size=2, max_delay=0.1, group_by_length=True, policy="greedy")
    follow(bench)
    bench.engine.jobs_time = padding
    for size in (100, 900, 300, 500, 900, 100) * 5:
        bench.ask("-", b"-" * size)
        bench.clock.advance(0.5)
        bench.send("-", "-", body=b"-" * size)
        bench.clock.advance(0.5)
    bench.model.change(bench.model.settings.changed(settings, "a test"))
    bench.clock.settle()
    for worker in bench.workers:
        worker.batches.clear()
    return bench


def test_a_change_of_another_setting_forgets_nothing() -> None:
    bench = version()
    known = bench.model.traffic.padded
    bench.model.change(bench.model.settings.changed({"max_delay": 0.2}, "a test"))

    assert known is not None and bench.model.traffic.padded is known


@pytest.mark.parametrize("mode", ["continuous", "asynchronous"])
def test_requests_that_do_not_travel_in_batches_are_not_grouped(mode: str) -> None:
    settings: dict[str, Any] = {mode: True}

    bench = StubVersion(workers=0, group_by_length=True, **settings)
    follow(bench)

    assert bench.model.queue.choice is None


@pytest.mark.parametrize("policy", ["auto", "fixed", "greedy"])
@pytest.mark.parametrize("seed", range(5))
def test_every_request_is_answered_once_and_held_no_longer_than_the_delay(policy: str, seed: int) -> None:
    chance = random.Random(seed)
    bench = version(policy=policy, batch_size=4)
    bench.up(2)
    bench.dispatcher.longest_hold = 0.0
    count = 200
    for number in range(count):
        bench.submit(str(number), b"-" * round(chance.lognormvariate(4.5, 0.8)), low_priority=chance.random() < 0.2)
        bench.clock.advance(chance.expovariate(60.0))
    bench.clock.advance(60.0)

    assert sorted(map(int, bench.sent)) == list(range(count))
    assert all(len(batch.split()) <= 4 for batch in bench.batches)
    assert bench.dispatcher.longest_hold <= 0.1 + 1e-9


async def test_what_a_byte_costs_is_told_where_batches_are_formed_by_length(house: House) -> None:
    model = await house.serve("m", config="batchSize: 2\ngroupByLength: true")
    assert model.traffic.padded is not None
    model.traffic.padded.per_byte = 0.0000123

    (document,) = (await house.tell("GET", "/models/m"))[1]
    batching = document["tsctl"]["batching"]

    assert (batching["groupByLength"], batching["learned"]["byteMs"], batching["batchSize"]) == (True, 0.0123, 2)


def test_the_setting_counts_from_its_change_on() -> None:
    bench = version()
    bench.model.change(bench.model.settings.changed({"group_by_length": False}, "a test"))
    assert bench.model.queue.choice is None

    bench.model.change(bench.model.settings.changed({"group_by_length": True}, "a test"))
    assert isinstance(bench.model.queue.choice, LengthGrouping)


def by_itself(
    seconds: Callable[[Sequence[Job]], float],
    said: str = "default",
    policy: str = "auto",
    told: list[str] | None = None,
) -> StubVersion:
    """Return a version for which no grouping was asked, after batches of texts of many lengths."""
    chance = random.Random(3)
    bench = StubVersion(batch_size=8, max_delay=0.1, policy=policy)
    bench.model.settings.origins = {"group_by_length": said}
    if told is not None:
        bench.model.reports.add = lambda kind, text, **_: told.append(f"{kind}: {text}")  # type: ignore[method-assign]
    follow(bench)
    bench.engine.jobs_time = seconds
    for _ in range(40):
        for _ in range(16):
            bench.submit("-", b"-" * round(chance.lognormvariate(4.5, 0.6)))
        bench.clock.advance(10.0)
    return bench


def test_a_model_that_is_seen_to_pad_gets_batches_of_similar_lengths_by_itself() -> None:
    events: list[str] = []
    bench = by_itself(padding, told=events)

    assert isinstance(bench.model.queue.choice, LengthGrouping)
    told = GroupingService().fields(bench.model, VersionView.DESCRIPTION)["batching"]
    assert told["groupByLength"] and told["padding"] > 0.3
    ((title, text),) = COMMAND_LINE.described({"batching": told}, 0.0)
    share = f"{told['padding']:.0%}"
    assert (title, text) == ("batches", f"of similar lengths: padding took {share} of the time (learned)")
    live = GroupingService().fields(bench.model, VersionView.LIVE)
    assert [each.text for each in COMMAND_LINE.state(live, 0.0)] == [f"{title} {text}"]
    (event,) = [each for each in events if each.startswith("grouped")]
    assert event.startswith("grouped: batches of similar lengths from now on: padding took ")


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param(lambda jobs: 0.008 + 0.0001 * sum(job.size for job in jobs), id="bytes cost by themselves"),
        pytest.param(lambda jobs: 0.008 + 0.004 * len(jobs), id="lengths do not matter"),
    ],
)
def test_a_model_that_does_not_pad_is_left_as_it_is(seconds: Callable[[Sequence[Job]], float]) -> None:
    assert by_itself(seconds).model.queue.choice is None


@pytest.mark.parametrize(("said", "policy"), [("set", "auto"), ("default", "greedy"), ("default", "fixed")])
def test_whoever_forbids_it_or_chooses_another_policy_gets_the_order_by_age(said: str, policy: str) -> None:
    assert by_itself(padding, said, policy).model.queue.choice is None


def test_where_lengths_are_grouped_what_they_cost_decides_on_sizes_and_not_what_was_learned_before() -> None:
    best = by_itself(padding).model.traffic.best

    assert best is not None and best.resting and best.size == best.most and not best.costs
