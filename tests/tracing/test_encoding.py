"""Our bytes of a span are those that opentelemetry makes of it."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from daemon.core.trace import RANDOM, SAMPLED, TraceContext
from daemon.tracing.encoding import Encoder
from daemon.tracing.otlp import readable
from daemon.tracing.span import INTERNAL, SERVER, Span

TEXT = st.text(st.characters(codec="utf-8"), max_size=200)
ID8, ID16 = (st.binary(min_size=n, max_size=n).filter(any).map(bytes.hex) for n in (8, 16))
CONTEXTS = st.builds(
    TraceContext, ID16, ID8, st.sampled_from([0, SAMPLED, SAMPLED | RANDOM]), st.sampled_from(["", "a=1", "a=1,b=x y"])
)
TIMES = st.floats(0, 4e9)
VALUES = st.one_of(TEXT, st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False))
SPANS = st.builds(
    Span,
    TEXT, CONTEXTS, st.one_of(st.just(""), ID8), st.sampled_from([SERVER, INTERNAL]), TIMES, TIMES,
    st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1, max_size=20), VALUES, max_size=8),
    st.one_of(st.none(), TEXT), st.lists(CONTEXTS, max_size=3), st.lists(st.tuples(TEXT, TIMES), max_size=3),
    st.booleans(),
)  # fmt: skip
RESOURCE = Resource({"service.name": "tsctl", "process.pid": 7, "of.a.cluster": True})
W3C = 0xFF  # of the flags: those of the caller's header, which the library leaves out


def as_the_library_has_it(spans: list[Span]) -> ExportTraceServiceRequest:
    scope = InstrumentationScope("tsctl", "1.0")
    return encode_spans([readable(span, RESOURCE, scope) for span in spans])


def as_we_have_it(spans: list[Span]) -> ExportTraceServiceRequest:
    """Return our bytes, read by protobuf, without what the library leaves out."""
    request: ExportTraceServiceRequest = ExportTraceServiceRequest.FromString(
        Encoder(RESOURCE.attributes, "1.0").request(spans)
    )
    for span in request.resource_spans[0].scope_spans[0].spans:
        span.flags &= ~W3C
        for link in span.links:
            link.flags &= ~W3C
            link.trace_state = ""
    return request


@given(st.lists(SPANS, min_size=1, max_size=5))
def test_our_bytes_say_what_those_of_opentelemetry_say(spans: list[Span]) -> None:
    # No parent is nobody's.
    spans = [span if span.parent else msgspec.structs.replace(span, foreign=False) for span in spans]
    ours, theirs = as_we_have_it(spans), as_the_library_has_it(spans)

    for mine, library in zip(
        ours.resource_spans[0].scope_spans[0].spans, theirs.resource_spans[0].scope_spans[0].spans, strict=True
    ):
        if not mine.HasField("status"):
            assert (library.status.code, library.status.message) == (0, "")  # the library writes an empty one
            library.ClearField("status")
    assert ours == theirs


def test_an_attribute_keeps_its_type_where_another_one_is_equal_to_it() -> None:
    context = TraceContext("1" * 32, "2" * 16)
    spans = [Span("s", context, "", INTERNAL, 0, 0, {"n": value}) for value in (1, True, 1.0)]

    request = as_we_have_it(spans)

    kinds = [span.attributes[0].value.WhichOneof("value") for span in request.resource_spans[0].scope_spans[0].spans]
    assert kinds == ["int_value", "bool_value", "double_value"]


def test_the_flags_hold_those_of_the_callers_header_and_whether_it_is_another_process() -> None:
    context = TraceContext("1" * 32, "2" * 16, SAMPLED | RANDOM)
    spans = [Span("s", context, parent, SERVER, 0, 0, {}, foreign=bool(parent)) for parent in ("", "3" * 16)]

    request = ExportTraceServiceRequest.FromString(Encoder({}, "1.0").request(spans))

    assert [span.flags for span in request.resource_spans[0].scope_spans[0].spans] == [0x103, 0x303]
