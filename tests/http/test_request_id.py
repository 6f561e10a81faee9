"""Which name a request goes by: the client's if it can stand in a log and a header, else one of ours."""

import re

import pytest

from tests.http.peer import Server, echo, get, post
from tsctl.daemon.http.limits import HttpLimits

OURS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}")


def names_given(data: bytes, limits: HttpLimits | None = None) -> list[str]:
    """The `x-request-id` of each answer to these bytes."""
    peer = (Server(echo) if limits is None else Server(echo, limits)).connect()
    peer.send(data)
    return [answer.headers["x-request-id"] for answer in peer.answers]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("a", id="one character"),
        pytest.param("x" * 128, id="128 characters"),
        pytest.param("~ !\"#$%&'()*+,-./:;<=>?@[]^_`{|}", id="every kind of printable character"),
    ],
)
def test_a_clients_name_is_taken(name: str) -> None:
    assert names_given(post(b"", f"X-Request-ID: {name}")) == [name]


@pytest.mark.parametrize(
    "header",
    [
        pytest.param(b"", id="none"),
        pytest.param(b"x-request-id:\r\n", id="an empty one"),
        pytest.param(b"x-request-id: " + b"x" * 129 + b"\r\n", id="129 characters"),
        pytest.param("x-request-id: né\r\n".encode(), id="beyond ASCII"),
        pytest.param(b"x-request-id: a\tb\r\n", id="a tab inside"),
        pytest.param(b"x-request-id: a\r\nx-request-id: \xff\r\n", id="of two the last, and it cannot be used"),
    ],
)
def test_any_other_is_replaced(header: bytes) -> None:
    (name,) = names_given(b"GET / HTTP/1.1\r\nHost: a\r\n" + header + b"\r\n")

    assert OURS.fullmatch(name)


def test_a_name_is_not_kept_for_the_next_request() -> None:
    first, second, third = names_given(post(b"", "x-request-id: mine") + get("/") + b"nonsense\r\n\r\n")

    assert first == "mine"
    assert OURS.fullmatch(second) and OURS.fullmatch(third) and second != third


def test_a_refused_request_keeps_its_name() -> None:
    head = b"POST / HTTP/1.1\r\nHost: a\r\nx-request-id: mine\r\nContent-Length: 9\r\n\r\n"

    assert names_given(head, HttpLimits(max_body=8)) == ["mine"]


def test_a_trailer_names_nothing() -> None:
    body = b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx-request-id: late\r\n\r\n"
    (name,) = names_given(b"POST / HTTP/1.1\r\nHost: a\r\n" + body)

    assert OURS.fullmatch(name)


def test_an_offer_to_upgrade_keeps_its_name() -> None:
    assert names_given(post(b"abc", "Connection: Upgrade", "Upgrade: h2c", "x-request-id: mine")) == ["mine"]
