"""Traces of requests, as a real collector receives them."""

import itertools
import time
from collections.abc import Iterator

import pytest

from tests.e2e.served import Served
from tests.extensions.tracing.collector import Collector, Received

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CALLER = f"00-{TRACE}-{SPAN}-01"
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


def test_each_daemon_of_an_upgrade_sends_its_own(traced: Served, collector: Collector) -> None:
    traced.register("echo", "--workers", "1")
    first = traced.pid
    traced.ask("/predictions/echo", b"x", traceparent=CALLER)

    traced.tsctl("upgrade")
    traced.ask("/predictions/echo", b"x", traceparent=CALLER)

    spans = collector.wait_for("predict echo", 2)
    assert [span.resource["process.pid"] for span in spans] == [first, traced.pid]
    assert first != traced.pid
