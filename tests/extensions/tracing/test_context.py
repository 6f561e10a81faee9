"""Trace contexts, as W3C Trace Context (level 2) defines them."""

import json

from tests.kit.said import said_in
from tsctl.daemon.extensions.tracing.context import (
    TraceContext,
    caller_of,
    names_caller,
    parse_traceparent,
    with_context,
)

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
VALID = f"00-{TRACE}-{SPAN}-01"


@said_in("traceparents.txt")
def test_a_traceparent_is_read(given: str) -> str:
    return f"{parse_traceparent(json.loads(given))}"


@said_in("callers.txt")
def test_the_caller_of_a_request_and_whether_it_names_one(given: str) -> str:
    headers = [(name, value.replace("LONG", "1" * 511)) for name, value in json.loads(given)]
    return f"{caller_of(headers)}, {names_caller(headers)}"


def test_a_context_is_written_as_it_was_read() -> None:
    context = parse_traceparent(VALID)

    assert context is not None
    assert context.header == VALID


def test_a_context_takes_the_place_of_the_clients_headers() -> None:
    headers = [("Traceparent", "nonsense"), ("Host", "here"), ("tracestate", "a=1")]

    assert with_context(headers, TraceContext(TRACE, SPAN)) == [("Host", "here"), ("traceparent", VALID)]
    assert with_context([], TraceContext(TRACE, SPAN, 1, "b=2")) == [("traceparent", VALID), ("tracestate", "b=2")]
