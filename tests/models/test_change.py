"""Settings change under a running model: what waits is looked at anew, what runs is finished, nothing is lost."""

from typing import Any

import pytest

from tests.kit.version import StubVersion
from tsctl.daemon.core.errors import BadRequest, QueueFull
from tsctl.daemon.models.change import change_settings


def slow(**options: Any) -> StubVersion:
    """Make a version with batches of 8 that wait ten seconds and take one, unless `options` say otherwise."""
    return StubVersion(**{"batch_size": 8, "max_delay": 10.0, "response_timeout": 7.0} | options)


def change(bench: StubVersion, **asked: Any) -> None:
    change_settings(bench.model, asked)
    bench.clock.settle()


@pytest.fixture
def bench() -> StubVersion:
    return slow()


def test_what_waits_becomes_a_whole_batch_by_a_smaller_size(bench: StubVersion) -> None:
    bench.send("a", "b", "c")
    assert bench.batches == []

    change(bench, batch_size=2)

    assert bench.batches == ["a b"]
    bench.clock.advance(11.0)
    assert bench.batches == ["a b", "c"]


def test_a_larger_size_counts_from_the_next_batch() -> None:
    bench = slow(batch_size=1)
    bench.send("a", "b", "c", "d")
    assert bench.batches == ["a", "b"]  # the second was sent ahead

    change(bench, batch_size=2)
    bench.clock.advance(1.0)

    assert bench.batches == ["a", "b", "c d"]


@pytest.mark.parametrize("policy", ["fixed", "auto"])
def test_a_shorter_delay_counts_from_when_the_wait_began(policy: str, bench: StubVersion) -> None:
    bench.send("a")
    bench.clock.advance(2.0)
    bench.model.traffic.gap = 0.0  # for `auto`: others have come lately

    change(bench, policy=policy, max_delay=3.0)

    bench.clock.advance(0.9)
    assert bench.batches == []
    bench.clock.advance(0.2)
    assert bench.batches == ["a"] and bench.dispatcher.reasons == {"delay": 1}


@pytest.mark.parametrize(
    ("asked", "reason"), [({"max_delay": 1.0}, "delay"), ({"policy": "greedy"}, "at_once")], ids=["delay", "greedy"]
)
def test_a_delay_that_is_over_already_is_over_at_once(asked: dict[str, Any], reason: str, bench: StubVersion) -> None:
    bench.send("a", "b")
    bench.clock.advance(2.0)

    change(bench, **asked)

    assert bench.batches == ["a b"] and bench.dispatcher.reasons == {reason: 1}
    assert bench.model.queue.patience == (4.0 if reason == "delay" else 40.0), "that of four delays, also of who waits"


def test_workers_and_listeners_are_told_and_a_later_worker_starts_with_it() -> None:
    bench = slow(load_time=1.0)  # its worker is told when it has loaded
    told: list[int] = []
    bench.model.tell_services = lambda: told.append(bench.model.settings.batch_size)

    change(bench, batch_size=3, response_timeout=4.0, startup_timeout=5.0)
    bench.clock.advance(1.0)
    bench.model.scale(2, 2)

    running, later = (worker.spec for worker in bench.engine.workers)
    assert (running.batch_size, running.response_timeout, told) == (3, 4.0, [3])
    assert (later.batch_size, later.response_timeout, later.startup_timeout) == (3, 4.0, 5.0)
    change(bench, batch_size=4)
    assert bench.engine.workers[0].spec.batch_size == 4
    bench.model.lose("its files are gone")
    with pytest.raises(BadRequest, match="register it again"):
        change(bench, batch_size=2)


@pytest.mark.parametrize(
    ("asked", "why"),
    [({"queue_jobs": 1}, "1 request waits"), ({"queue_bytes": 14}, "15 of 14 bytes wait, and this request has 5")],
)
def test_a_smaller_queue_refuses_the_next_and_serves_those_that_wait(asked: dict[str, int], why: str) -> None:
    bench = slow(queue_bytes=20)
    for name in "abc":
        bench.ask(name, b"12345")

    change(bench, **asked)
    with pytest.raises(QueueFull, match=why):
        bench.ask("d", b"12345")
    bench.clock.advance(11.0)

    assert bench.client.statuses == {"a": 200, "b": 200, "c": 200}


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"policy": "eager", "batch_size": 2}, "batching is 'eager'; expected one of auto, fixed, greedy"),
        ({"response_timeout": 0.0, "batch_size": 2}, "response_timeout is 0; expected more than 0 seconds"),
        ({"startup_timeout": 0.0, "batch_size": 2}, "startup_timeout is 0; expected more than 0 seconds"),
    ],
)
def test_an_impossible_value_changes_nothing(asked: dict[str, Any], sentence: str, bench: StubVersion) -> None:
    before = bench.model.settings, bench.model.request

    with pytest.raises(BadRequest, match=sentence):
        change(bench, **asked)

    assert (bench.model.settings, bench.model.request) == before


def test_the_other_settings_stay_and_the_changed_ones_say_who_changed_them() -> None:
    bench = slow(origins={"batch_size": "register", "policy": "default"})

    change(bench, batch_size=2)

    settings = bench.model.settings
    assert (settings.batch_size, settings.max_delay, settings.response_timeout) == (2, 10.0, 7.0)
    assert settings.origins == {"batch_size": "set", "policy": "default"}
