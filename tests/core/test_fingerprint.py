"""Two requests are the same if a handler could not tell them apart, but for their names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsctl.daemon.core.arena import Arena
from tsctl.daemon.core.fingerprint import NAMES_OF_REQUESTS, TRAVEL, fingerprint
from tsctl.daemon.core.job import Param

HEADERS = [("Content-Type", "image/png"), ("explain", "False")]
BODY = Param("body", "image/png", b"words")
TEXTS = st.text(max_size=6)
PARAMS = st.lists(st.builds(Param, TEXTS, TEXTS, st.binary(max_size=6)), max_size=3)
PAIRS = st.lists(st.tuples(TEXTS, TEXTS), max_size=3)


def known(params: list[Param] | None = None, headers: list[tuple[str, str]] | None = None) -> bytes:
    return fingerprint([BODY] if params is None else params, HEADERS if headers is None else headers)


@pytest.mark.parametrize("name", [*sorted(NAMES_OF_REQUESTS | TRAVEL), "X-B3-TraceId", "x-datadog-trace-id"])
def test_names_of_requests_and_how_they_travelled_make_no_difference(name: str) -> None:
    assert known(headers=[*HEADERS, (name.title(), "7")]) == known(headers=[(name, "8"), *HEADERS]) == known()


@pytest.mark.parametrize(
    "header",
    [
        ("x-tenant", "7"), ("authorization", "Bearer x"), ("explain", "True"), ("url_path", "a/b"), ("cookie", "a=b"),
        ("x-request-priority", "low"), ("user-agent", "curl"), ("x-forwarded-for", "10.0.0.1"),
    ],
)  # fmt: skip
def test_any_other_header_does(header: tuple[str, str]) -> None:
    assert known(headers=[*HEADERS, header]) != known()
    assert known(headers=[*HEADERS, header]) != known(headers=[*HEADERS, (header[0], "other")])


@pytest.mark.parametrize(
    "params",
    [
        pytest.param([BODY._replace(name="data")], id="another name"),
        pytest.param([BODY._replace(content_type="image/jpeg")], id="another content type"),
        pytest.param([BODY._replace(value=b"wordz")], id="another value of that size"),
        pytest.param([BODY, Param("", "", b"")], id="one more parameter"),
        pytest.param([BODY._replace(value=b"wor"), Param("", "", b"ds")], id="the same bytes in two"),
        pytest.param([], id="none"),
    ],
)
def test_any_difference_in_a_parameter_counts(params: list[Param]) -> None:
    assert known(params) != known()


def test_where_the_bytes_are_makes_no_difference() -> None:
    arena = Arena(1 << 20)
    stored = arena.take(5)
    assert stored is not None
    stored.view[:] = b"words"

    assert known([BODY._replace(value=stored)]) == known()


@given(PARAMS, PAIRS, PARAMS, PAIRS)
def test_nothing_else_is_the_same(one: list[Param], its: list[tuple[str, str]], other: list[Param],
                                  theirs: list[tuple[str, str]]) -> None:  # fmt: skip
    def seen(headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
        return [(name.lower(), text) for name, text in headers]

    same = (one, seen(its)) == (other, seen(theirs))

    assert (fingerprint(one, its) == fingerprint(other, theirs)) == same
