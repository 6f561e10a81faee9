"""An answer means the same however its bytes are cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tsctl.python.scripted import answer, chunked
from tsctl.python.errors import ConnectionLost, UnreadableAnswer
from tsctl.python.transport.reader import MOST_HEAD, AnswerReader

Read = tuple[int, dict[str, str], bytes, bool, bool]
BODIES = st.binary(max_size=60)
STREAMS = st.one_of(
    BODIES.map(answer),
    st.lists(BODIES.filter(bool), max_size=4).map(lambda pieces: chunked(*pieces)),
    BODIES.map(lambda body: b"HTTP/1.1 200 OK\r\n\r\n" + body),
    BODIES.map(lambda body: b"HTTP/1.1 100 Continue\r\n\r\n" + answer(body, 503, retry_after="1")),
    st.just(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"),
    BODIES.map(lambda body: b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body),
)


def read(pieces: list[bytes]) -> Read:
    reader, body = AnswerReader(), b""
    for piece in pieces:
        body += reader.feed(piece)
    reader.read_end()
    return reader.status, reader.headers, body, reader.whole, reader.reusable


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[left:right] for left, right in pairwise(edges) if left < right]


@given(STREAMS, st.lists(st.integers(min_value=0), max_size=12))
def test_any_cut_of_the_bytes_reads_the_same(stream: bytes, places: list[int]) -> None:
    whole = read([stream])

    assert read(cut(stream, places)) == whole
    assert read([stream[index : index + 1] for index in range(len(stream))]) == whole


@given(BODIES.filter(bool), st.integers(min_value=0), st.booleans())
def test_no_beginning_of_a_bounded_answer_is_whole(body: bytes, place: int, in_chunks: bool) -> None:
    stream = chunked(body) if in_chunks else answer(body)
    reader = AnswerReader()
    beginning = stream[: place % len(stream)]
    if beginning:
        reader.feed(beginning)

    assert not reader.whole
    with pytest.raises(ConnectionLost):
        reader.read_end()


@given(st.binary(min_size=1, max_size=100))
def test_any_bytes_are_an_answer_or_one_of_two_errors(data: bytes) -> None:
    try:
        read([data])
    except (ConnectionLost, UnreadableAnswer):
        return
    assert data.startswith(b"HTTP/")


# llhttp passes over line ends between messages, as RFC 9112 has it.
@given(BODIES, st.binary(max_size=20).filter(lambda more: more.strip(b"\r\n")), st.booleans())
def test_a_connection_with_more_than_the_answer_is_not_used_again(body: bytes, more: bytes, later: bool) -> None:
    reader = AnswerReader()

    assert reader.feed(answer(body) if later else answer(body) + more) == body
    assert reader.whole and reader.reusable is later
    reader.feed(more)
    assert not reader.reusable


def test_an_interim_answer_is_passed_over_and_another_one_behind_is_not_read() -> None:
    reader = AnswerReader()
    body = reader.feed(b"HTTP/1.1 100 Continue\r\nA: 1\r\n\r\n" + answer(b"a", 503) + answer(b"b"))

    assert (reader.status, body, "a" in reader.headers, reader.reusable) == (503, b"a", False, False)


def test_trailers_are_no_headers() -> None:
    reader = AnswerReader()
    reader.feed(chunked(b"a")[:-2] + b"X-Later: 1\r\n\r\n")

    assert reader.whole
    assert "x-later" not in reader.headers


def test_endless_headers_are_refused() -> None:
    reader = AnswerReader()
    reader.feed(b"HTTP/1.1 200 OK\r\n")
    for _ in range(MOST_HEAD // 1000):
        reader.feed(b"A: " + b"x" * 995 + b"\r\n")

    with pytest.raises(UnreadableAnswer, match="headers"):
        reader.feed(b"A: " + b"x" * 995 + b"\r\n")
