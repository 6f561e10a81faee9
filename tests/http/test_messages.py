"""Requests are read as the client meant them; answers say nothing that we did not mean."""

import json
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.http.peer import Answer, read_answers
from tsctl.daemon.core.errors import BadRequest, DaemonError
from tsctl.daemon.core.job import Reply
from tsctl.daemon.http.limits import MOST_JSON, MOST_QUERY_FIELDS, MOST_SEGMENTS, MOST_TARGET
from tsctl.daemon.http.messages import (
    Request,
    Response,
    _Numbers,
    error_response,
    new_request_id,
    reply_response,
    status_response,
)


def request(target: str = "/", headers: list[tuple[str, str]] | None = None, body: bytes = b"") -> Request:
    return Request("GET", target, headers or [], body)


def sent(response: Response) -> Answer:
    """Return an answer as read by a client."""
    (answer,) = read_answers(response.head("an-id", keep_alive=True) + response.body)
    return answer


@pytest.mark.parametrize(
    ("target", "path"),
    [
        pytest.param("/", [], id="the root has no segments"),
        pytest.param("/ping", ["ping"], id="one segment"),
        pytest.param("/models/a/1.0", ["models", "a", "1.0"], id="three segments"),
        pytest.param("/models/a//", ["models", "a"], id="empty segments at the end are dropped"),
        pytest.param("/models//a", ["models", "", "a"], id="an empty segment in the middle stays"),
        pytest.param("/models/?limit=1/2", ["models"], id="the query is no part of the path"),
        pytest.param("/a%20b", ["a b"], id="segments are percent-decoded"),
        pytest.param("/a%2Fb", ["a/b"], id="an escaped slash does not split"),
        pytest.param("/%C3%A9", ["é"], id="escapes are UTF-8"),
        pytest.param("/%ff", ["\ufffd"], id="broken UTF-8 is replaced"),
        pytest.param("/100%", ["100%"], id="a lone percent sign stays"),
        pytest.param("http://host:80/ping?x", ["ping"], id="the absolute form names a path too"),
        pytest.param("http://host", [], id="the absolute form may end at the host"),
        pytest.param("*", [], id="the asterisk form is the root"),
    ],
)
def test_path(target: str, path: list[str]) -> None:
    assert request(target).path == path


@pytest.mark.parametrize(
    ("target", "query"),
    [
        pytest.param("/", {}, id="none"),
        pytest.param("/?a=1&b=2", {"a": "1", "b": "2"}, id="two parameters"),
        pytest.param("/?a=1&a=2", {"a": "2"}, id="the last of repeated ones counts"),
        pytest.param("/?a=&b", {"a": "", "b": ""}, id="values may be empty"),
        pytest.param("/?a=%2Fx+y", {"a": "/x y"}, id="values are decoded"),
    ],
)
def test_query(target: str, query: dict[str, str]) -> None:
    assert request(target).query == query


def test_a_header_is_found_in_any_case_and_of_several_the_last_counts() -> None:
    asked = request(headers=[("Accept", "a"), ("aCCept", "b"), ("Other", "c")])

    assert (asked.header("ACCEPT"), asked.header("Missing")) == ("b", "")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"{", id="cut short"),
        pytest.param(b'"\xff"', id="not UTF-8"),
        pytest.param(b"[" * 30_000, id="nested deeper than the parser goes"),
        pytest.param(b"1" * 5_000, id="a number longer than Python reads"),
    ],
)
def test_a_body_that_is_not_json_is_a_bad_request(body: bytes) -> None:
    with pytest.raises(BadRequest, match="not JSON"):
        request(body=body).json()


@pytest.mark.parametrize(
    "target",
    [
        pytest.param("/m" + "/" * (MOST_SEGMENTS - 1), id="segments"),
        pytest.param("/" + "x" * (MOST_TARGET - 1), id="characters"),
        pytest.param("/?" + "&".join(["a=1"] * MOST_QUERY_FIELDS), id="parameters"),
    ],
)
def test_a_target_of_as_much_as_is_allowed_is_read(target: str) -> None:
    asked = request(target)

    assert asked.path is not None and asked.query is not None


@pytest.mark.parametrize(
    ("target", "read", "status", "sentence"),
    [
        ("/" * (MOST_SEGMENTS + 2), "path", 400, f"more than {MOST_SEGMENTS} segments"),
        ("/?" + "x" * MOST_TARGET, "path", 414, f"{MOST_TARGET + 2} characters; the limit is {MOST_TARGET}"),
        ("/?" + "x" * MOST_TARGET, "query", 414, f"{MOST_TARGET + 2} characters; the limit is {MOST_TARGET}"),
        ("/?" + "&" * MOST_QUERY_FIELDS, "query", 400, f"more than {MOST_QUERY_FIELDS} parameters"),
    ],
    ids=["segments", "characters of a path", "characters of a query", "parameters"],
)
def test_a_target_of_more_is_refused_with_the_limit(target: str, read: str, status: int, sentence: str) -> None:
    with pytest.raises(DaemonError, match=sentence) as caught:
        getattr(request(target), read)

    assert caught.value.status == status


def test_a_json_document_has_a_limit() -> None:
    assert request(body=b"1".rjust(MOST_JSON)).json() == 1
    with pytest.raises(
        DaemonError, match=f"{MOST_JSON + 1} bytes; the limit for a JSON document is {MOST_JSON}"
    ) as caught:
        request(body=b"1".rjust(MOST_JSON + 1)).json()

    assert caught.value.status == 413


def test_request_ids_are_random_uuids() -> None:
    ids = {new_request_id() for _ in range(1000)}

    assert len(ids) == 1000
    assert {uuid.UUID(an_id).version for an_id in ids} == {4}
    assert all(len({an_id[at : at + 2] for an_id in ids}) > 200 for at in (0, 2, 4, 6)), (
        "each byte of the number varies"
    )


def test_after_all_numbers_ids_have_another_rest() -> None:
    numbers = _Numbers(0)
    before, numbers._first = numbers.rest, numbers.next()
    numbers._last = 0
    numbers.next()

    assert numbers.rest != before


def test_every_answer_has_torchserves_fixed_headers() -> None:
    answer = sent(Response(200, b"x"))

    assert answer.headers == {
        "x-request-id": "an-id",
        "pragma": "no-cache",
        "cache-control": "no-cache; no-store, must-revalidate, private",
        "expires": "Thu, 01 Jan 1970 00:00:00 UTC",
        "connection": "keep-alive",
        "content-length": "1",
    }


@pytest.mark.parametrize(
    ("status", "phrase", "line"),
    [
        pytest.param(200, "", b"HTTP/1.1 200 OK", id="the standard phrase"),
        pytest.param(200, "Fine", b"HTTP/1.1 200 Fine", id="the handler's own phrase"),
        pytest.param(299, "", b"HTTP/1.1 299 ", id="no phrase for an unknown status"),
        pytest.param(200, "a\r\nX: 1", b"HTTP/1.1 200 a  X: 1", id="a phrase stays on its line"),
    ],
)
def test_the_status_line(status: int, phrase: str, line: bytes) -> None:
    head = Response(status, phrase=phrase).head("an-id", keep_alive=True)

    assert head.split(b"\r\n")[0] == line


OURS = ["Pragma", "CONNECTION", "content-length", "Transfer-Encoding", "X-Request-Id"]
IMPOSSIBLE = [
    "",
    "Content-Length ",
    " Connection",
    "Content-Length:",
    "X\r\nY",
    "X Y",
    "Ä",
    "Transfer-Encoding\t",
    "X\0",
]


@pytest.mark.parametrize("name", [*OURS, *IMPOSSIBLE])
def test_a_header_of_ours_or_with_an_impossible_name_is_not_sent(name: str) -> None:
    plain = sent(Response(200, b"body"))

    assert sent(Response(200, b"body", [(name, "0")])) == plain


@given(name=st.text(max_size=12), value=st.text(max_size=30), phrase=st.text(max_size=12))
def test_no_handler_can_add_a_line_of_its_own(name: str, value: str, phrase: str) -> None:
    plain = Response(200).head("an-id", keep_alive=True).count(b"\n")

    head = Response(200, b"", [("X-Good", value), (name, value)], phrase).head("an-id", keep_alive=True)

    assert head.count(b"\r\n") == head.count(b"\n") == head.count(b"\r") <= plain + 2
    assert head.index(b"\r\n\r\n") == len(head) - 4
    assert b"\0" not in head


def test_json_is_printed_as_torchserve_prints_it() -> None:
    answer = sent(status_response("Healthy"))

    assert answer.body == b'{\n  "status": "Healthy"\n}\n'
    assert answer.headers["content-type"] == "application/json"


def test_an_error_reply_becomes_an_error_document() -> None:
    reply = Reply(507, b"Out of resources", error="InternalServerException", retry_after=3)

    answer = sent(reply_response(reply))

    document = {"code": 507, "type": "InternalServerException", "message": "Out of resources"}
    assert (answer.status, json.loads(answer.body)) == (507, document)
    assert answer.headers["retry-after"] == "3"


@pytest.mark.parametrize("status", [-1, 0, 42, 100, 101, 199, 1000])
def test_a_handler_cannot_choose_a_status_that_is_no_final_answer(status: int) -> None:
    answer = sent(reply_response(Reply(status, b"body")))

    assert answer.status == 503
    assert f"HTTP status {status}" in json.loads(answer.body)["message"]


def test_an_error_without_words_is_still_an_answer() -> None:
    assert sent(error_response(DaemonError())).status == 500
