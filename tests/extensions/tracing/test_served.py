"""Traces of requests, as a real collector receives them."""

import contextlib
import itertools
import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.e2e.served import PATIENCE, Served, eventually
from tests.extensions.tracing.collector import Collector, Received

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CALLER = f"00-{TRACE}-{SPAN}-01"
JSON = {"content_type": "application/json"}
QUICK = 10.0  # seconds; a stop that waited for a collector's timeouts would take longer


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.close()


@pytest.fixture
def traced(idle: Served, collector: Collector) -> Served:
    """A daemon that records only what its callers record."""
    idle.start("--trace-endpoint", collector.url, "--trace-sample", "0")
    return idle


def do(word: str) -> bytes:
    """A request to the handler `obey`."""
    return json.dumps({"do": word}).encode()


def jobs(served: Served, model: str) -> dict[str, Any]:
    """How many requests of a model wait and run, among others."""
    models = served.command("GET", "/tsctl/live").json["models"]
    return next(each for each in models if each["name"] == model)


def loads(served: Served) -> bool:
    """Whether the daemon has loaded opentelemetry: protobuf is a library of its own."""
    return "google/_upb" in Path(f"/proc/{served.pid}/maps").read_text()


def in_order(*spans: Received) -> bool:
    """Whether each span begins when the one before has ended, or later; a microsecond may be lost by rounding."""
    return all(one.ended <= other.began + 1e-6 for one, other in itertools.pairwise(spans))


def within(part: Received, whole: Received) -> bool:
    return whole.began - 1e-6 <= part.began <= part.ended <= whole.ended + 1e-6


@pytest.mark.thin
def test_a_request_is_a_tree_from_its_receipt_to_its_answer(traced: Served, collector: Collector) -> None:
    traced.register("spells", "--workers", "1")
    before = time.time()

    answer = traced.ask("/predictions/spells?token=no", b"abra", traceparent=CALLER, tracestate="vendor=1")

    (server,) = collector.wait_for("predict spells")
    assert answer.status == 200
    assert (server.trace, server.parent, server.state, server.failed) == (TRACE, SPAN, "vendor=1", False)
    assert server.attributes == {
        "http.request.method": "POST", "url.path": "/predictions/spells", "http.response.status_code": 200,
        "tsctl.model.name": "spells", "tsctl.model.version": "1.0", "tsctl.request.id": answer.headers["x-request-id"],
        "tsctl.attempts": 1, "tsctl.ending": "answered",
    }  # fmt: skip
    assert server.events == ["received"]
    assert before <= server.began <= server.ended <= time.time()
    assert (server.resource["service.name"], server.resource["process.pid"]) == ("tsctl", traced.pid)
    parts = collector.children(server)
    assert sorted(parts) == ["queued", "worker"]
    (queued,), (worker,) = parts["queued"], parts["worker"]
    assert in_order(queued, worker) and within(queued, server) and within(worker, server)
    stages = collector.children(worker)
    assert list(stages) == ["preprocess", "inference", "postprocess"]
    ordered = [span for spans in stages.values() for span in spans]
    assert in_order(*ordered) and all(within(stage, worker) for stage in ordered)


def test_the_requests_of_a_batch_are_linked_and_their_handler_is_told_of_them(
    traced: Served, collector: Collector
) -> None:
    traced.register("echo", "--workers", "1", "--batch-size", "2", "--max-delay", "20000", "--batching", "fixed")
    told: dict[str, str] = {}

    def ask(trace: str) -> None:
        answer = traced.ask("/predictions/echo", b"x", traceparent=f"00-{trace}-{SPAN}-01", tracestate="vendor=1")
        assert answer.json["rows"] == 2
        headers = {name.lower(): value for name, value in answer.json["headers"].items()}
        assert headers["tracestate"] == "vendor=1"
        told[trace] = headers["traceparent"]

    asking = [threading.Thread(target=ask, args=(trace,)) for trace in ("a" * 32, "b" * 32)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()

    (batch,) = collector.wait_for("batch echo")
    workers = collector.wait_for("worker", 2)
    collector.wait_for("predict echo", 2)
    assert told == {span.trace: f"00-{span.trace}-{span.id}-01" for span in workers}
    assert sorted(batch.links) == sorted(span.id for span in workers)
    assert [span.links for span in workers] == [[batch.id]] * 2
    assert (batch.parent, batch.trace in told) == ("", False)
    sizes = [(span.attributes["tsctl.batch.size"], span.attributes["tsctl.batch.reason"]) for span in (batch, *workers)]
    assert sizes == [(2, "full")] * 3


def test_only_what_the_caller_or_the_sample_records_is_recorded(idle: Served, collector: Collector) -> None:
    idle.environment |= {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_SERVICE_NAME": "vision"}
    idle.start("--trace-sample", "1")
    idle.register("echo", "--workers", "1")

    unsampled = idle.ask("/predictions/echo", b"x", traceparent=f"00-{TRACE}-{SPAN}-00")
    invalid = idle.ask("/predictions/echo", b"x", traceparent="nonsense")
    idle.stop()

    headers = {name.lower(): value for name, value in unsampled.json["headers"].items()}
    assert headers["traceparent"] == f"00-{TRACE}-{SPAN}-00"
    (server,) = collector.named("predict echo")
    assert (server.attributes["tsctl.request.id"], server.parent) == (invalid.headers["x-request-id"], "")
    assert server.resource["service.name"] == "vision"


def test_requests_that_end_otherwise_end_their_spans(traced: Served, collector: Collector) -> None:
    traced.register("obey", "--workers", "1", "--batch-size", "2", "--max-delay", "0", "--queue-jobs", "1", "--retry")
    traced.register("counts", "--workers", "1")
    gate = traced.folder / "gate"

    def ask(name: str, word: str, **headers: str) -> int:
        headers = {"traceparent": CALLER, "x_request_id": name} | headers
        return traced.ask("/predictions/obey", do(word), **headers, **JSON).status

    statuses = {name: ask(name, word) for name, word in (("raises", "raise"), ("again", "die once"))}
    streamed = traced.ask(
        "/predictions/counts", b"now", traceparent=CALLER, x_request_id="streamed", content_type="text/plain"
    )
    blocking = threading.Thread(target=ask, args=("running", f"wait {gate}"))
    blocking.start()
    eventually(lambda: jobs(traced, "obey")["running"] == 1, "a request runs")
    statuses["expired"] = ask("expired", "print", x_request_deadline_ms="50")
    with contextlib.closing(traced.connect()) as leaving:
        headers = {"traceparent": CALLER, "x-request-id": "left", "content-type": "application/json"}
        leaving.request("POST", "/predictions/obey", do("print"), headers)
        eventually(lambda: jobs(traced, "obey")["queued"] == 1, "a request waits")
        statuses["refused"] = ask("refused", "print")
    eventually(lambda: jobs(traced, "obey")["queued"] == 0, "its client has left")
    gate.touch()
    blocking.join()

    assert streamed.body == b"0 1 2 end"
    collector.wait_for("predict obey", 6)
    collector.wait_for("predict counts")
    found = {span.attributes["tsctl.request.id"]: span for span in collector.spans if span.name.startswith("predict")}
    answered = {name: span.attributes.get("http.response.status_code") for name, span in found.items()}
    assert answered == statuses | {"running": 200, "streamed": 200, "left": None}
    assert statuses == {"raises": 503, "again": 200, "expired": 504, "refused": 503}
    assert {name for name, span in found.items() if span.failed} == {"raises", "refused"}  # the others: their clients
    assert found["left"].attributes["error.type"] == "cancelled"
    assert found["streamed"].events == ["received", "first piece of the answer"]
    assert [span.failed for span in collector.children(found["again"])["worker"]] == [True, False]
    assert {name: sorted(collector.children(found[name])) for name in ("expired", "left", "refused")} == {
        "expired": ["queued"],
        "left": ["queued"],
        "refused": [],
    }


def test_a_collector_that_is_not_there_is_told_once_and_costs_no_answer(idle: Served) -> None:
    away = Collector()
    away.close()
    idle.environment["OTEL_EXPORTER_OTLP_TIMEOUT"] = "1"  # seconds, in which it is asked again
    idle.start("--trace-endpoint", away.url, "--trace-sample", "1")
    idle.register("echo", "--workers", "1")

    def told() -> list[str]:
        events = idle.command("GET", "/tsctl/events").json["events"]
        return [event["text"] for event in events if event["kind"] == "traces-lost"]

    assert idle.ask("/predictions/echo", b"x").status == 200
    eventually(lambda: bool(told()), "the lost traces are told")
    assert {idle.ask("/predictions/echo", b"x").status for _ in range(20)} == {200}
    assert int(re.findall(r'tsctl_trace_spans_total\{outcome="lost"\} (\d+)', idle.tsctl("metrics"))[0]) >= 4
    began = time.monotonic()
    idle.stop()

    assert time.monotonic() - began < QUICK
    log = (idle.folder / "state/logs/daemon.log").read_text()
    assert log.count("traces are lost until the collector takes them again") == 1
    assert away.url in log
    assert "Traceback" not in log


def test_a_recorded_request_is_an_example_of_its_latency(traced: Served) -> None:
    traced.register("echo", "--workers", "1")
    traced.ask("/predictions/echo", b"x", traceparent=CALLER)
    traced.ask("/predictions/echo", b"x")

    asked = traced.ask("/metrics", method="GET", accept="application/openmetrics-text")
    plain = traced.ask("/metrics", method="GET")

    assert asked.headers["content-type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    latency = next(
        each
        for each in text_string_to_metric_families(asked.body.decode())
        if each.name == "tsctl_request_latency_seconds"
    )
    found = [sample.exemplar for sample in latency.samples if sample.exemplar]
    assert [exemplar.labels for exemplar in found] == [{"trace_id": TRACE}]
    assert 0.0 < found[0].value < PATIENCE
    assert TRACE not in plain.body.decode()
    assert plain.headers["content-type"].startswith("text/plain")


def test_each_daemon_of_an_upgrade_sends_its_own(traced: Served, collector: Collector) -> None:
    traced.register("echo", "--workers", "1")
    first = traced.pid
    traced.ask("/predictions/echo", b"x", traceparent=CALLER)

    traced.tsctl("upgrade")
    traced.ask("/predictions/echo", b"x", traceparent=CALLER)

    spans = collector.wait_for("predict echo", 2)
    assert [span.resource["process.pid"] for span in spans] == [first, traced.pid]
    assert first != traced.pid


def test_a_daemon_loads_what_sends_traces_only_where_they_are_asked_for(idle: Served, collector: Collector) -> None:
    idle.start()
    off = loads(idle)
    idle.stop()
    idle.start("--trace-endpoint", collector.url)

    assert (off, loads(idle)) == (False, True)


def test_traces_that_are_asked_for_without_the_extra_are_an_error_at_the_start(
    idle: Served, collector: Collector
) -> None:
    shadow = idle.folder / "shadow" / "opentelemetry"
    shadow.mkdir(parents=True)
    (shadow / "__init__.py").touch()
    idle.environment["PYTHONPATH"] = str(shadow.parent)

    refused = idle.run("start", "--trace-endpoint", collector.url)
    idle.environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector.url
    begun = idle.run("start")

    assert refused.returncode == 1
    assert "`trace_endpoint` is set" in refused.stderr
    assert "pip install 'tsctl[traces]'" in refused.stderr
    assert begun.returncode == 0
    assert "no traces are sent" in begun.stderr
