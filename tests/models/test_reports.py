"""What an operator must know of a version is an event: ends of workers and the fate of their requests, and failures."""

import pytest

from tests.kit.version import StubVersion
from tsctl.daemon.events.events import Event, Events


def told(bench: StubVersion, *kinds: str) -> list[Event]:
    """Return the version's events, of these kinds if any are named; that it is ready goes without saying."""
    events = bench.model.reports.latest()
    return [event for event in events if (event.kind in kinds if kinds else event.kind != "model-ready")]


def texts(bench: StubVersion, *kinds: str) -> list[str]:
    return [event.text for event in told(bench, *kinds)]


@pytest.fixture
def bench() -> StubVersion:
    return StubVersion()


def test_the_end_of_a_worker_without_requests_is_told(bench: StubVersion) -> None:
    bench.workers[0].die("killed by SIGKILL")

    (event,) = told(bench)
    assert (event.kind, event.level, event.model, event.version) == ("worker-exited", "error", "m", "1.0")
    assert event.worker == bench.workers[0].pid
    assert event.text == f"worker {event.worker} ended: killed by SIGKILL; it had no requests"


def test_only_the_versions_own_events_are_its_latest(bench: StubVersion) -> None:
    events: Events = bench.model.reports._recurring.events
    events.add("registered", "another", model="other", version="1.0")

    assert "another" not in texts(bench)


def test_only_the_end_of_a_worker_that_nobody_asked_for_is_remembered() -> None:
    bench = StubVersion(workers=2)
    bench.model.scale(1, 1)
    bench.clock.advance(1.0)
    assert bench.model.reports.ended is None

    next(worker for worker in bench.workers if worker in bench.model.pool.workers).die("killed")

    assert bench.model.reports.ended is not None
