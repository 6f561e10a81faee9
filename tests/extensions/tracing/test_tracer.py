"""The spans of requests to a version with stub workers, on a fake clock."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.kit.version import StubVersion
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.core.errors import QueueFull
from tsctl.daemon.core.job import Job, Piece, Reply, TimeBudget
from tsctl.daemon.extensions.tracing.context import parse_traceparent
from tsctl.daemon.extensions.tracing.tracer import MOST_PATH, RequestTrace, Span, Traces, placed
from tsctl.daemon.models.request_watcher import RequestFacts
from tsctl.handlers.wire import STAGE_TIME, Measurement

CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
UNSAMPLED = CALLER[:-2] + "00"
CRASH = "it exited with code 7"
BEFORE = 0.25  # seconds from a request's headers to its last byte


def asked(target: str, began: float) -> RequestFacts:
    return RequestFacts("POST", target, began, None, "", None)


def trace_of(job: Job) -> RequestTrace | None:
    """Return the trace that records a job; None if none does."""
    found = [each for each in job.watchers if isinstance(each, RequestTrace)]
    return found[0] if found else None


class Traced(StubVersion):
    """A version whose finished spans are kept.

    Args:
        ratio: of the requests without a caller's trace.
    """

    def __init__(self, *, ratio: float = 1.0, **further: object) -> None:
        self.spans: list[Span] = []
        clock = FakeClock()
        super().__init__(clock=clock, **further)  # type: ignore[arg-type]
        Traces(clock, ratio, self.spans.append).follow(self.model)

    def predict(self, name: str, traceparent: str = "", **further: object) -> Job:
        """Let a request arrive, as `tsctl.daemon.api.submission` does."""
        headers = [("traceparent", traceparent)] if traceparent else []
        job = self.client.job(name, headers=headers, **further)  # type: ignore[arg-type]
        self.watch(job, asked("/predictions/m?token=secret", job.arrived - BEFORE))
        self.model.submit(job)
        return job

    def watch(self, job: Job, facts: RequestFacts) -> None:
        """Let the tracer see a request."""
        (tracer,) = self.model.watchers
        tracer.watch(job, facts)

    def only(self, name: str, trace: str = "") -> Span:
        """Return the only span of this name, of this trace if one is given."""
        (span,) = (each for each in self.spans if each.name == name and trace in each.context.trace_id)
        return span

    def names(self) -> list[str]:
        return sorted(span.name for span in self.spans)


def told(job: Job) -> str:
    """Return the `traceparent` that the handler sees."""
    (value,) = (value for name, value in job.headers if name == "traceparent")
    return value


def lasted(span: Span) -> Any:
    return pytest.approx(span.ended - span.began)


@pytest.fixture
def version() -> Traced:
    return Traced(batch_time=1.0)


def test_a_path_of_any_length_is_a_short_attribute_because_thousands_of_spans_may_wait(version: Traced) -> None:
    job = version.client.job("a")
    version.watch(job, asked("/" + "x" * 60_000, job.arrived))
    version.model.submit(job)
    version.clock.advance(5.0)

    assert len(str(version.only("predict m").attributes["url.path"])) == MOST_PATH


def test_an_answered_request_is_a_tree_whose_times_are_those_of_the_job(version: Traced) -> None:
    version.predict("running")
    version.clock.advance(0.4)
    job = version.predict("a", CALLER)
    version.clock.advance(5.0)

    trace = trace_of(job)
    assert trace is not None and trace.trace_id == CALLER[3:35]
    server, queued, worker = (version.only(name, trace.trace_id) for name in ("predict m", "queued", "worker"))
    assert (server.parent, server.foreign, server.kind) == (CALLER[36:52], True, "server")
    assert queued.parent == worker.parent == server.context.span_id
    assert server.attributes == {
        "http.request.method": "POST", "url.path": "/predictions/m", "http.response.status_code": 200,
        "tsctl.request.id": "a", "tsctl.model.name": "m", "tsctl.model.version": "1.0",
        "tsctl.attempts": 1, "tsctl.ending": "answered",
    }  # fmt: skip
    assert server.error is None
    assert (lasted(server), lasted(queued), lasted(worker)) == (BEFORE + 1.6, 0.6, 1.0)
    assert dict(server.events) == pytest.approx({"received": server.began + BEFORE})
    assert queued.began == pytest.approx(server.began + BEFORE)
    assert worker.began == pytest.approx(queued.ended)


def test_the_handler_is_told_of_the_span_of_its_batch() -> None:
    version = Traced()

    job = version.predict("a", CALLER)
    version.clock.advance(5.0)

    context = parse_traceparent(told(job))
    assert context is not None
    own = version.only("worker").context
    assert (context.trace_id, context.span_id, context.flags) == (own.trace_id, own.span_id, own.flags)


def test_a_batch_is_one_span_with_links_to_all_its_requests() -> None:
    version = Traced(batch_size=2, max_delay=1.0, ratio=0.0)

    first, second = version.predict("a", CALLER), version.predict("b", CALLER.replace("4bf9", "aaaa"))
    version.clock.advance(5.0)

    batch = version.only("batch m")
    workers = [version.only("worker", trace.trace_id) for job in (first, second) if (trace := trace_of(job))]
    assert list(batch.links) == [worker.context for worker in workers]
    assert [list(worker.links) for worker in workers] == [[batch.context]] * 2
    assert batch.parent == ""
    assert {key: batch.attributes[key] for key in ("tsctl.batch.size", "tsctl.batch.reason", "tsctl.worker.pid")} == {
        "tsctl.batch.size": 2,
        "tsctl.batch.reason": "full",
        "tsctl.worker.pid": version.workers[0].pid,
    }


def test_a_request_that_is_not_recorded_keeps_its_headers_and_costs_no_span() -> None:
    version = Traced(ratio=0.0)

    plain, unsampled = version.predict("a"), version.predict("b", UNSAMPLED)
    version.clock.advance(5.0)

    assert not plain.watchers and not unsampled.watchers
    assert told(unsampled) == UNSAMPLED
    assert not Traced(ratio=1.0).predict("c", UNSAMPLED).watchers, "what the caller does not record"
    assert ("traceparent", "") not in plain.headers
    assert version.spans == []


def test_a_request_without_a_caller_begins_a_trace_of_its_own() -> None:
    version = Traced(ratio=1.0)

    job = version.predict("a", "nonsense")
    version.clock.advance(5.0)

    assert version.only("predict m").parent == ""
    assert told(job).startswith(f"00-{version.only('predict m').context.trace_id}-")


@pytest.mark.parametrize(
    ("stages", "began", "ended", "seconds", "expected"),
    [
        pytest.param({}, 0.0, 9.0, 9.0, [], id="none"),
        pytest.param(
            {"preprocess": 1.0, "inference": 2.0, "postprocess": 1.0}, 10.0, 18.0, 4.0,
            [("preprocess", 12.0, 13.0), ("inference", 13.0, 15.0), ("postprocess", 15.0, 16.0)],
            id="in the middle of the time that the batch took",
        ),
        pytest.param(
            {"preprocess": 1.0, "inference": 20.0}, 10.0, 18.0, 8.0,
            [("preprocess", 10.0, 11.0), ("inference", 11.0, 18.0)],
            id="never longer than the batch",
        ),
    ],
)  # fmt: skip
def test_where_stages_are_placed(
    stages: dict[str, float], began: float, ended: float, seconds: float, expected: list[tuple[str, float, float]]
) -> None:
    assert placed(stages, began, ended, seconds) == expected


def test_the_stages_of_a_batch_are_parts_of_its_requests_and_of_no_other(version: Traced) -> None:
    version.predict("a")
    version.clock.advance(0.5)
    version.metrics.emitted.add_measurements(
        [Measurement("histogram", STAGE_TIME, "s", (("stage", name),), 0.25) for name in ("preprocess", "inference")]
    )
    version.clock.advance(5.0)
    version.predict("b")
    version.clock.advance(5.0)

    worker = next(span for span in version.spans if span.name == "worker")
    stages = [version.only("preprocess"), version.only("inference")]
    assert [stage.parent for stage in stages] == [worker.context.span_id] * 2
    assert worker.began <= stages[0].began < stages[0].ended <= stages[1].began < stages[1].ended <= worker.ended
    assert version.names().count("worker") == 2


def end_waiting(version: Traced, job: Job) -> None:
    version.model.refuse_waiting()


def leave(version: Traced, job: Job) -> None:
    version.model.abandon(job)


def expire(version: Traced, job: Job) -> None:
    version.clock.advance(0.6)


@pytest.mark.parametrize(
    ("how", "status", "kind"),
    [
        pytest.param(end_waiting, 503, "ServiceUnavailableException", id="refused"),
        pytest.param(leave, None, "cancelled", id="cancelled"),
        pytest.param(expire, 504, "RequestTimeoutException", id="expired"),
    ],
)
def test_a_request_that_waits_in_vain_ends_with_its_status(
    how: Callable[[Traced, Job], None], status: int | None, kind: str
) -> None:
    version = Traced(batch_time=10.0, capacity=1, ratio=0.0)
    version.predict("running")
    version.clock.settle()
    job = version.predict("a", CALLER, budget=TimeBudget(0.5, version.clock.now(), "x-request-deadline-ms"))
    version.clock.advance(0.1)

    how(version, job)

    assert version.names() == ["predict m", "queued"]
    server = version.only("predict m")
    assert bool(server.error) == (kind != "cancelled"), "the doing of a client is no failure of the server"
    assert (server.attributes.get("http.response.status_code"), server.attributes["error.type"]) == (status, kind)
    assert version.only("queued").ended <= server.ended


def test_a_request_that_is_not_accepted_has_never_waited() -> None:
    version = Traced(batch_time=10.0, capacity=1, queue_jobs=1, ratio=0.0)
    version.send("running")
    version.send("waiting")

    with pytest.raises(QueueFull):
        version.predict("a", CALLER)

    server = version.only("predict m")
    assert version.names() == ["predict m"]
    assert server.attributes["http.response.status_code"] == 503
    assert server.error is not None and "queue" in server.error


def test_a_request_that_leaves_while_it_runs_ends_with_its_batch(version: Traced) -> None:
    job = version.predict("a")
    version.clock.advance(0.5)

    version.model.abandon(job)
    version.clock.advance(5.0)

    server, worker = version.only("predict m"), version.only("worker")
    assert server.attributes["error.type"] == "cancelled"
    assert server.ended == pytest.approx(worker.ended)


def test_a_request_that_expires_while_it_runs_ends_before_its_batch(version: Traced) -> None:
    version.predict("a", budget=TimeBudget(0.5, version.clock.now(), "x-request-deadline-ms"))
    version.clock.advance(5.0)

    server, worker = version.only("predict m"), version.only("worker")
    assert server.attributes["http.response.status_code"] == 504
    assert (lasted(server), lasted(worker)) == (BEFORE + 0.5, 1.0)
    assert version.names() == ["batch m", "predict m", "queued", "worker"]


def test_a_request_that_is_run_again_has_a_span_for_each_time() -> None:
    version = Traced(workers=2, batch_time=1.0)
    job = version.predict("a")
    first = told(job)
    version.clock.advance(0.5)

    victim = next(worker for worker in version.workers if worker.batches)
    victim.crash(CRASH)
    version.clock.advance(10.0)

    server = version.only("predict m")
    workers = [span for span in version.spans if span.name == "worker"]
    assert [span.error for span in workers] == [CRASH, None]
    assert [span.context.header for span in workers] == [first, told(job)]
    assert version.names().count("queued") == version.names().count("batch m") == 2
    assert server.attributes["tsctl.attempts"] == 2
    assert server.error is None


def test_a_request_whose_worker_dies_ends_with_an_error(version: Traced) -> None:
    version.predict("a")
    version.clock.advance(0.5)

    version.workers[0].crash(CRASH, retry=False)
    version.clock.advance(0.0)

    assert version.names() == ["batch m", "predict m", "queued", "worker"]
    assert version.only("worker").error == CRASH
    assert version.only("predict m").attributes["http.response.status_code"] == 500


def test_a_streamed_answer_tells_when_its_first_piece_went(version: Traced) -> None:
    pieces: list[Reply] = []
    job = version.predict("a", stream=pieces.append)
    version.clock.advance(0.25)

    job.stream(Piece(200, b"one"))
    version.clock.advance(0.25)
    job.stream(Piece(200, b"two"))
    version.clock.advance(5.0)

    server = version.only("predict m")
    assert dict(server.events)["first piece of the answer"] == pytest.approx(server.began + BEFORE + 0.25)


def test_a_handlers_error_is_the_servers_and_a_clients_is_not(version: Traced) -> None:
    for name, status in (("a", 500), ("b", 400)):
        job = version.predict(name)
        version.clock.settle()
        job.answer(Reply(status, b"no", error="E"))

    servers = [span for span in version.spans if span.name == "predict m"]
    assert [span.error for span in servers] == ["no", None]
    assert [span.attributes["error.type"] for span in servers] == ["E", "E"]


def test_the_answers_of_workers_are_examples_by_outcome_and_others_are_not() -> None:
    version = Traced(batch_time=1.0, capacity=1)
    exemplars = version.metrics.exemplars
    assert exemplars is not None
    budget = TimeBudget(0.5, version.clock.now(), "x-request-deadline-ms")
    late = version.predict("late", budget=budget)
    version.clock.advance(0.1)
    left = version.predict("left")
    version.clock.advance(0.1)
    version.model.abandon(left)
    version.clock.advance(5.0)
    good = version.predict("good")
    version.clock.advance(5.0)

    found = {outcome: list(exemplars.of(outcome).values()) for outcome in ("ok", "error", "expired")}
    recorded, expired = trace_of(good), trace_of(late)
    assert recorded is not None and expired is not None
    assert [each.trace_id for each in found["ok"]] == [recorded.trace_id]
    assert [each.trace_id for each in found["expired"]] == [expired.trace_id]
    assert found["error"] == []
    assert found["ok"][0].seconds == pytest.approx(1.0)
