"""A version whose batches do not fit into its workers' memory is sent smaller ones, until larger ones are tried."""

import gc
import weakref
from pathlib import Path

import pytest

from tests.api.house import House
from tests.kit.version import StubVersion
from tsctl.daemon.extensions.fitting.fitting import FIRST, Fitting
from tsctl.extensions.fitting import COMMAND_LINE

NAMES = "abcdefghijklmnop"


@pytest.fixture
def bench() -> StubVersion:
    bench = StubVersion(batch_size=8, policy="greedy")
    bench.model.tell_services = Fitting(bench.model).follow_settings
    return bench


def tell(bench: StubVersion, rows: int) -> None:
    """Let a worker report that so many rows did not fit."""
    bench.model.pool.spec.too_large(rows)


def sizes(bench: StubVersion) -> list[int]:
    """Send sixteen requests at once; return the sizes of their batches."""
    for worker in bench.workers:
        worker.batches.clear()
    for name in NAMES:
        bench.submit(name)
    bench.clock.advance(20.0)
    return [len(batch.split()) for batch in bench.batches]


def events(bench: StubVersion) -> list[str]:
    return [f"{event.kind}: {event.text}" for event in bench.model.reports.latest() if event.kind.startswith("batch-")]


def test_no_larger_batch_is_sent_from_then_on(bench: StubVersion) -> None:
    assert sizes(bench) == [8, 8]

    tell(bench, 8)

    assert sizes(bench) == [4, 4, 4, 4]
    assert events(bench) == [
        "batch-capped: a batch of 8 requests did not fit into memory: at most 4 from now on, more are tried in 60 s"
    ]


def test_workers_expect_and_new_ones_are_made_for_the_smaller_batches(bench: StubVersion) -> None:
    tell(bench, 8)

    assert bench.model.pool.spec.batch_size == 4
    assert bench.model.settings.batch_size == 8, "what its operator asked for"


def test_larger_ones_are_tried_again_and_the_cap_is_forgotten_in_the_end(bench: StubVersion) -> None:
    tell(bench, 4)
    bench.clock.advance(FIRST)
    assert sizes(bench) == [4] * 4

    bench.clock.advance(FIRST)
    assert sizes(bench) == [8, 8]

    bench.clock.advance(FIRST)
    assert sizes(bench) == [8, 8]
    assert events(bench)[1:] == [
        f"batch-raised: batches of up to {most} requests are tried again: 4 did not fit" for most in (4, 8)
    ]


def test_a_cap_that_is_lowered_once_more_is_not_raised_when_the_first_one_was_due(bench: StubVersion) -> None:
    tell(bench, 8)
    bench.clock.advance(FIRST / 2)
    tell(bench, 4)

    bench.clock.advance(FIRST - 1.0)

    assert len(events(bench)) == 2


def test_what_waits_for_a_full_batch_goes_when_fewer_fill_it() -> None:
    bench = StubVersion(batch_size=8, policy="fixed", max_delay=100.0)
    Fitting(bench.model)
    for name in "abcd":
        bench.submit(name)
    bench.clock.settle()

    tell(bench, 8)
    bench.clock.settle()

    assert bench.batches == ["a b c d"]


def test_of_rows_that_share_a_place_of_a_batch_each_place_counts_once(bench: StubVersion) -> None:
    bench.model.dispatcher.share = 2  # type: ignore[misc]

    tell(bench, 8)
    assert sizes(bench)[0] == 2
    tell(bench, 2)
    assert sizes(bench)[0] == 1


def test_two_workers_that_tell_the_same_are_one_event(bench: StubVersion) -> None:
    tell(bench, 8)
    tell(bench, 8)

    assert len(events(bench)) == 1


def test_a_change_of_another_setting_keeps_the_cap(bench: StubVersion) -> None:
    tell(bench, 8)
    bench.model.change(bench.model.settings.changed({"max_delay": 0.2}, "a test"))

    assert sizes(bench) == [4, 4, 4, 4]


def test_a_batch_size_that_is_set_counts_at_once(bench: StubVersion) -> None:
    tell(bench, 8)
    bench.model.change(bench.model.settings.changed({"batch_size": 6}, "a test"))

    assert sizes(bench) == [6, 6, 4]
    bench.clock.advance(FIRST)
    assert len(events(bench)) == 1, "no try is left over"
    tell(bench, 6)
    bench.model.change(bench.model.settings.changed({"max_delay": 0.2}, "a test"))
    assert max(sizes(bench)) == 3, "the size was not set once more"


def test_rows_that_run_continuously_are_capped_too() -> None:
    bench = StubVersion(batch_size=8, continuous=True)
    Fitting(bench.model)

    tell(bench, 8)

    assert bench.model.pool.spec.rows == 4


def test_a_version_that_is_taken_out_of_service_leaves_memory_with_its_cap() -> None:
    bench = StubVersion(batch_size=8)
    Fitting(bench.model)
    clock, fitting = bench.clock, weakref.ref(next(iter(bench.model.path.too_large)))
    tell(bench, 8)
    bench.model.scale(0, 0)
    bench.model.close()
    clock.settle()

    del bench
    gc.collect()
    assert fitting() is None
    clock.advance(FIRST)


async def test_describe_and_the_metrics_tell(tmp_path: Path) -> None:
    house = House(tmp_path)
    model = await house.serve("m", config="batchSize: 8")
    model.pool.spec.too_large(8)

    (document,) = (await house.tell("GET", "/models/m"))[1]

    batching = document["tsctl"]["batching"]
    assert (batching["cap"], batching["batchSize"]) == ({"most": 4, "tooLarge": 8, "triedInSeconds": 60.0}, 8)
    assert house.samples("tsctl_batches_too_large_total") == {("m", "1.0"): 1}


def test_describe_at_the_command_line_shows_a_cap_alone() -> None:
    cap = {"most": 4, "tooLarge": 8, "triedInSeconds": 75.0}

    assert COMMAND_LINE.described({"batching": {"cap": cap}}, 0.0) == [
        ("batch cap", "at most 4 requests: 8 did not fit into memory; more are tried in 1 min 15 s")
    ]
    assert COMMAND_LINE.described({"batching": {"cap": None}}, 0.0) == ()
    assert COMMAND_LINE.described({"batching": {}}, 0.0) == (), "of a daemon without it"
