"""A request that has waited too long in the queue is answered; how long a low one waits for the others."""

import pytest

from tests.batching.limited import limited, told


@pytest.mark.parametrize(
    ("waits", "expired"),
    [pytest.param(3, [], id="in time"), pytest.param(5, ["3", "4"], id="not in time")],
)
def test_the_queue_timeout_counts_for_what_waits(waits: int, expired: list[str]) -> None:
    bench = limited(queue_timeout=3.5)
    bench.ask("running")
    for index in range(waits):
        bench.ask(str(index))

    bench.clock.advance(60.0)

    assert bench.dispatcher.expired["queue"] == len(expired)
    assert [name for name, status in bench.client.statuses.items() if status == 504] == expired
    for name in expired:
        assert bench.client.took[name] == pytest.approx(3.5)
        assert told(bench, name) == (
            "The request was not run: of the 3.5 s that queueTimeout allows, it waited 3.5 s."
            " Allow more time, or add workers."
        )


def test_the_queue_timeout_does_not_count_while_a_worker_has_it() -> None:
    bench = limited(queue_timeout=0.5)

    bench.ask("a")
    bench.clock.advance(60.0)

    assert bench.client.statuses == {"a": 200}


def test_the_queue_timeout_begins_anew_when_a_job_comes_back() -> None:
    bench = limited(queue_timeout=1.5)
    bench.engine.load_time = 10.0
    bench.ask("a")
    bench.clock.advance(0.75)

    bench.workers[-1].die()
    bench.clock.advance(60.0)

    assert bench.client.took["a"] == pytest.approx(2.25)


def test_low_priority_has_the_same_queue_timeout() -> None:
    bench = limited(queue_timeout=2.5, max_delay=100.0)
    bench.ask("running")
    bench.ask("low", low_priority=True)
    for index in range(3):
        bench.ask(str(index))

    bench.clock.advance(60.0)

    assert bench.client.took["low"] == pytest.approx(2.5)
    assert bench.client.statuses["low"] == 504


def test_low_priority_goes_when_it_has_waited_four_delays() -> None:
    bench = limited(max_delay=0.5)
    bench.ask("running")
    bench.ask("low", low_priority=True)
    for index in range(5):
        bench.ask(str(index))

    bench.clock.advance(60.0)

    assert bench.sent == ["running", "0", "low", "1", "2", "3", "4"]
