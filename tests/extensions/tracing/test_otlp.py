"""Spans as opentelemetry knows them."""

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanKind, StatusCode

from tsctl.daemon.extensions.tracing.buffer import OtlpSender, readable, resource_of
from tsctl.daemon.extensions.tracing.context import TraceContext
from tsctl.daemon.extensions.tracing.tracer import INTERNAL, SERVER, Span

CONTEXT = TraceContext("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", 3, "vendor=1")
OTHER = TraceContext("5" * 32, "6" * 16)
SCOPE = InstrumentationScope("tsctl", "1.0")


def test_a_span_keeps_its_place_its_times_and_its_status() -> None:
    span = Span(
        "predict m", CONTEXT, "a" * 16, SERVER, 1000.5, 1001.0, {"tsctl.attempts": 2}, "it failed", (OTHER,),
        (("received", 1000.75),), foreign=True,
    )  # fmt: skip

    made = readable(span, resource_of("1.0"), SCOPE)

    assert made.context is not None and made.parent is not None and made.status is not None
    assert f"{made.context.trace_id:032x}" == CONTEXT.trace_id
    assert f"{made.context.span_id:016x}" == CONTEXT.span_id
    assert (made.context.trace_flags, made.context.trace_state.to_header()) == (3, "vendor=1")
    assert (f"{made.parent.span_id:016x}", made.parent.is_remote) == ("a" * 16, True)
    assert (made.kind, made.start_time, made.end_time) == (SpanKind.SERVER, 1000_500_000_000, 1001_000_000_000)
    assert (made.status.status_code, made.status.description) == (StatusCode.ERROR, "it failed")
    assert [(event.name, event.timestamp) for event in made.events] == [("received", 1000_750_000_000)]
    assert [f"{link.context.trace_id:032x}" for link in made.links] == [OTHER.trace_id]
    assert dict(made.attributes or {}) == {"tsctl.attempts": 2}


def test_a_span_without_an_error_and_a_parent_has_none() -> None:
    made = readable(Span("batch m", OTHER, "", INTERNAL, 1.0, 2.0, {}), resource_of("1.0"), SCOPE)

    assert made.parent is None
    assert made.status is not None and made.status.status_code is StatusCode.UNSET


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        pytest.param({}, "tsctl", id="tsctl"),
        pytest.param({"OTEL_SERVICE_NAME": "vision"}, "vision", id="as its variable says"),
        pytest.param({"OTEL_RESOURCE_ATTRIBUTES": "service.name=text"}, "text", id="as the attributes say"),
    ],
)
def test_the_service_is_named(environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    found = resource_of("1.0").attributes

    assert (found["service.name"], found["service.version"]) == (expected, "1.0")


def test_a_span_whose_texts_are_no_utf8_is_encoded() -> None:
    torn = "party \ud83c"
    span = Span(torn, CONTEXT, "", INTERNAL, 0.0, 1.0, {"path": torn}, torn, events=[(torn, 0.5)])

    (made,) = encode_spans([readable(span, resource_of("1.0"), SCOPE)]).resource_spans[0].scope_spans[0].spans

    texts = (made.name, made.attributes[0].value.string_value, made.status.message, made.events[0].name)
    assert set(texts) == {"party ?"}


def test_spans_that_were_not_delivered_are_told() -> None:
    sender = OtlpSender("http://127.0.0.1:9/v1/traces", "1.0")
    sender.close()  # from now on the exporter delivers nothing, and does not try

    assert sender.send([Span("s", CONTEXT, "", INTERNAL, 0.0, 1.0, {})]) == (
        "no answer, or a refusal, from http://127.0.0.1:9/v1/traces"
    )
