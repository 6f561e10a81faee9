"""Trace contexts, as W3C Trace Context (level 2) defines them."""

import pytest

from tsctl.daemon.extensions.tracing.context import (
    TraceContext,
    caller_of,
    names_caller,
    parse_traceparent,
    with_context,
)

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
VALID = f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        pytest.param(VALID, 1, id="sampled"),
        pytest.param(f"00-{TRACE}-{SPAN}-00", 0, id="not sampled"),
        pytest.param(f"00-{TRACE}-{SPAN}-03", 3, id="with a random trace id"),
        pytest.param(f"00-{TRACE}-{SPAN}-fd", 1, id="unknown flags are dropped"),
        pytest.param(f"cc-{TRACE}-{SPAN}-01", 1, id="a later version"),
        pytest.param(f"cc-{TRACE}-{SPAN}-01-what-may-follow", 1, id="a later version with more fields"),
    ],
)
def test_a_valid_traceparent_is_read(text: str, flags: int) -> None:
    assert parse_traceparent(text) == TraceContext(TRACE, SPAN, flags)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param(VALID.upper(), id="upper case"),
        pytest.param(f"ff-{TRACE}-{SPAN}-01", id="version ff"),
        pytest.param(f"{VALID}-more", id="version 00 with another field"),
        pytest.param(f"cc-{TRACE}-{SPAN}-01more", id="a later version with another length"),
        pytest.param(f"00-{'0' * 32}-{SPAN}-01", id="no trace id"),
        pytest.param(f"00-{TRACE}-{'0' * 16}-01", id="no span id"),
        pytest.param(f"00-{TRACE[:-1]}-{SPAN}-01", id="a short trace id"),
        pytest.param(f"00-{TRACE}-{SPAN}0-01", id="a long span id"),
        pytest.param(f"00-{TRACE[:-1]}g-{SPAN}-01", id="no hexadecimal digit"),
        pytest.param(f"00-{TRACE}-{SPAN}-1", id="one digit of flags"),
        pytest.param(f"0-{TRACE}-{SPAN}-01", id="one digit of the version"),
        pytest.param(f" {VALID}", id="a space before"),
        pytest.param(f"{VALID}\n", id="a line feed behind"),
        pytest.param(VALID.replace("-", "_"), id="other separators"),
        pytest.param(f"00-{TRACE[:-1]}٣-{SPAN}-01", id="a digit of another script"),
    ],
)
def test_an_invalid_traceparent_is_none(text: str) -> None:
    assert parse_traceparent(text) is None


def test_a_context_is_written_as_it_was_read() -> None:
    context = parse_traceparent(VALID)

    assert context is not None
    assert context.header == VALID


def test_a_callers_context_has_its_state_whatever_the_case_of_its_headers() -> None:
    headers = [("Host", "here"), ("TraceParent", VALID), ("TraceState", "a=1"), ("tracestate", "b=2")]

    assert caller_of(headers) == TraceContext(TRACE, SPAN, 1, "a=1,b=2")


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param([("host", "here"), ("connection-", VALID)], id="without the header"),
        pytest.param([("traceparent", "nonsense"), ("tracestate", "a=1")], id="with an invalid one"),
        pytest.param([("traceparent", VALID), ("traceparent", VALID)], id="with two"),
    ],
)
def test_a_request_has_no_caller(headers: list[tuple[str, str]]) -> None:
    assert caller_of(headers) is None


def test_a_state_that_is_too_long_is_dropped_and_the_trace_kept() -> None:
    headers = [("traceparent", VALID), ("tracestate", "a=" + "1" * 511)]

    assert caller_of(headers) == TraceContext(TRACE, SPAN)


def test_a_context_takes_the_place_of_the_clients_headers() -> None:
    headers = [("Traceparent", "nonsense"), ("Host", "here"), ("tracestate", "a=1")]

    assert with_context(headers, TraceContext(TRACE, SPAN)) == [("Host", "here"), ("traceparent", VALID)]
    assert with_context([], TraceContext(TRACE, SPAN, 1, "b=2")) == [("traceparent", VALID), ("tracestate", "b=2")]


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param([], False, id="no headers"),
        pytest.param([("Host", "here"), ("connection-", "x")], False, id="others"),
        pytest.param([("Host", "here"), ("TraceParent", "nonsense")], True, id="in any case, valid or not"),
    ],
)
def test_a_request_names_a_caller(headers: list[tuple[str, str]], expected: bool) -> None:
    assert names_caller(headers) is expected
