"""What an operator must know of a version is an event: ends of workers and the fate of their requests, and failures."""

import pytest

from tests.kit.version import StubVersion
from tsctl.daemon.core.errors import QueueFull
from tsctl.daemon.core.job import Reply
from tsctl.daemon.events.event import Event
from tsctl.daemon.events.events import Events
from tsctl.daemon.events.recurring import EVERY
from tsctl.daemon.workers.engine import LoadFailure


def told(bench: StubVersion, *kinds: str) -> list[Event]:
    """Return the version's events, of these kinds if any are named; that it is ready goes without saying."""
    events = bench.model.reports.latest()
    return [event for event in events if (event.kind in kinds if kinds else event.kind != "model-ready")]


def texts(bench: StubVersion, *kinds: str) -> list[str]:
    return [event.text for event in told(bench, *kinds)]


def test_a_version_whose_first_worker_comes_up_is_ready_once() -> None:
    bench = StubVersion(workers=2, load_time=1.0)
    bench.clock.advance(2.0)
    bench.workers[0].die()
    bench.clock.advance(2.0)

    assert texts(bench, "model-ready", "model-recovered") == ["ready: 1 of 2 workers"]


@pytest.fixture
def bench() -> StubVersion:
    return StubVersion()


def test_the_end_of_a_worker_without_requests_is_told(bench: StubVersion) -> None:
    bench.workers[0].die("killed by SIGKILL")

    (event,) = told(bench)
    assert (event.kind, event.level, event.model, event.version) == ("worker-exited", "error", "m", "1.0")
    assert event.worker == bench.workers[0].pid
    assert event.text == f"worker {event.worker} ended: killed by SIGKILL; it had no requests"


@pytest.mark.parametrize(
    ("retry", "killed", "fate"),
    [
        pytest.param(True, False, "3 retried", id="run again"),
        pytest.param(False, False, "3 answered with 500", id="answered in place of the worker"),
        pytest.param(False, True, "3 answered with 507", id="answered by how it was killed"),
    ],
)
def test_the_end_of_a_worker_tells_what_became_of_its_requests(retry: bool, killed: bool, fate: str) -> None:
    bench = StubVersion(batch_size=3)
    bench.send("a", "b", "c")

    bench.workers[0].die("killed", retry=retry, killed=killed)

    (event,) = told(bench)
    assert event.text == f"worker {event.worker} ended: killed; its requests: {fate}"
    assert event.requests == ("a", "b", "c")


def test_requests_of_one_worker_with_different_fates_are_named() -> None:
    bench = StubVersion(batch_size=2, max_delay=0.0)
    bench.send("a", "b", "c", "d")
    assert len(bench.workers[0].in_flight) == 2
    bench.send("e")  # waits

    bench.workers[0].die("killed", retry=False)

    (event,) = told(bench)
    assert event.text.endswith(
        "; its requests: 2 not begun and waiting again (c d), 2 answered with 500 (a b)"
    )  # fmt: skip


def test_a_request_whose_client_has_left_has_no_client(bench: StubVersion) -> None:
    (job,) = bench.send("a")
    bench.model.abandon(job)

    bench.workers[0].die("killed")

    assert texts(bench) == [f"worker {bench.workers[0].pid} ended: killed; its requests: 1 without a client"]


def test_a_batch_beyond_the_response_timeout_is_told_with_its_worker(bench: StubVersion) -> None:
    bench.send("a")

    bench.workers[0].hang(Reply(500, b"too late", error="InternalServerException"))

    (event,) = told(bench)
    assert event.text.endswith("ended: killed: response timeout; its requests: 1 answered with 500")
    assert event.requests == ("a",)


def test_workers_that_were_told_to_end_are_no_event() -> None:
    bench = StubVersion(workers=3)

    bench.model.scale(1, 1)
    bench.clock.settle()
    bench.model.stop()
    bench.model.pool.drain(1.0)
    bench.clock.settle()

    assert bench.model.pool.empty
    assert texts(bench) == []


def test_a_stopped_worker_that_still_had_requests_is_told(bench: StubVersion) -> None:
    bench.send("a")

    bench.model.stop()
    bench.model.pool.kill()
    bench.clock.settle()

    assert [text.partition("; ")[2] for text in texts(bench, "worker-exited")] == ["its requests: 1 retried"]
    assert texts(bench, "requests-refused") == ['a request was refused: Model "m" version 1.0 is being stopped.']


def test_a_model_that_cannot_be_loaded_has_failed_once() -> None:
    bench = StubVersion(workers=3, load_failure=LoadFailure("ValueError: no weights", "Traceback …"))
    bench.clock.advance(1.0)

    assert [(event.kind, event.level, event.text) for event in told(bench)] == [
        ("model-failed", "error", "failed, and no worker is started again: ValueError: no weights")
    ]


def test_a_model_whose_workers_end_too_early_too_often_has_failed(bench: StubVersion) -> None:
    for _ in range(5):
        bench.workers[-1].crash()
        bench.clock.advance(9.1)

    (event,) = told(bench, "model-failed")
    assert "5 workers exited before their first answer" in event.text
    assert len(told(bench, "worker-exited")) == 5


def test_a_failed_model_that_is_tried_again_with_success_has_recovered() -> None:
    bench = StubVersion(load_failure=LoadFailure("no"))
    bench.clock.advance(1.0)

    bench.engine.load_failure = None
    bench.model.retry()
    bench.clock.advance(1.0)

    assert [event.kind for event in bench.model.reports.latest()] == ["model-failed", "model-ready"]


def test_places_that_are_given_up_beside_a_ready_worker_are_told(bench: StubVersion) -> None:
    bench.engine.load_failure = LoadFailure("out of memory")

    bench.model.scale(3, 3)
    bench.clock.advance(1.0)

    (last,) = texts(bench, "workers-given-up")[-1:]
    assert last == "2 of 3 workers are not started again: out of memory"
    assert told(bench, "model-failed") == []


def test_refused_requests_are_told_at_once_and_then_with_their_count() -> None:
    bench = StubVersion(queue_jobs=1, batch_size=1)
    bench.send("running")
    bench.submit("waiting")
    for number in range(784):
        with pytest.raises(QueueFull):
            bench.submit(f"r{number}")

    (event,) = told(bench)
    assert (event.kind, event.level, event.requests) == ("requests-refused", "warning", ("r0",))
    assert event.text.startswith("a request was refused: The queue of model")

    bench.clock.advance(EVERY)
    assert "(783 more within 60 s, 784 in all)" in texts(bench)[-1]


def test_waiting_requests_that_are_refused_are_told(bench: StubVersion) -> None:
    bench.send("running", "ahead")
    bench.submit("waiting")

    bench.model.stop()
    bench.model.refuse_waiting()

    assert texts(bench) == ['a request was refused: Model "m" version 1.0 is being stopped.']


def test_failed_requests_are_told_with_the_first_line_of_their_error(bench: StubVersion) -> None:
    bench.engine.answer = lambda job: Reply(503, b"ValueError: bad\nTraceback", error="InternalServerException")

    for name in "abc":
        bench.ask(name)
        bench.clock.advance(1.5)
    bench.clock.advance(EVERY)

    first, minute = told(bench)
    assert (first.kind, first.text) == ("requests-failed", "a request failed with status 503: ValueError: bad")
    assert minute.text == f"{first.text} (2 more within 60 s, 3 in all)"
    assert (first.requests, minute.requests) == (("a",), ("b", "c"))


@pytest.mark.parametrize("status", [200, 404, 499])
def test_an_answer_below_500_is_no_failure(status: int, bench: StubVersion) -> None:
    bench.engine.answer = lambda job: Reply(status, b"no")

    bench.ask("a")
    bench.clock.advance(1.5)

    assert bench.client.statuses == {"a": status}
    assert texts(bench) == []


def test_expired_requests_are_told(bench: StubVersion) -> None:
    bench.send("a", seconds=0.1)
    bench.clock.advance(0.2)

    (event,) = told(bench)
    assert (event.kind, event.requests) == ("requests-expired", ("a",))
    assert event.text.startswith("a request had no time left: The model did not answer in time")


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
