"""Both clients say the same to a daemon, and make the same of its answers."""

import asyncio
import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import tsctl
from tests.tsctl.python.conftest import Caller, Script
from tests.tsctl.python.scripted import CLOSE, answer, chunked

NOBODY = r"no daemon at `.*/none.sock`; start one with `tsctl start`"
Make = Callable[..., Caller]


def failure(status: int, message: str, kind: str = "X", **headers: str) -> bytes:
    body = json.dumps({"code": status, "type": kind, "message": message}).encode()
    return answer(body, status, content_type="application/json", **headers)


def test_a_prediction_is_one_post_and_its_answer_an_object(scripted: Script, caller: Make) -> None:
    daemon = scripted(answer(b'{"a": [1]}', content_type="application/json"))

    assert caller(daemon)("predict", "net/2.0", [1, 2]) == {"a": [1]}

    (asked,) = daemon.asked
    assert asked.line == "POST /predictions/net/2.0 HTTP/1.1"
    assert (asked.body, asked.headers["content-type"]) == (b"[1, 2]", "application/json")
    assert asked.headers["host"] == "localhost"


def test_a_connection_is_used_again(scripted: Script, caller: Make) -> None:
    daemon = scripted(answer(b"a"), chunked(b"b", b"c"), answer(b"d"))
    call = caller(daemon)

    assert [call("predict", "net", "x") for _ in range(3)] == [b"a", b"bc", b"d"]
    assert [asked.connection for asked in daemon.asked] == [0, 0, 0]


@pytest.mark.parametrize(
    "first",
    [
        pytest.param([answer(b"a", connection="close"), CLOSE], id="the daemon says that it closes"),
        pytest.param([answer(b"a"), CLOSE], id="the daemon has closed it"),
        pytest.param([b"HTTP/1.1 200 OK\r\n\r\na", CLOSE], id="the end of the connection is the end of the answer"),
        pytest.param([b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", CLOSE], id="HTTP/1.0"),
    ],
)
def test_a_connection_that_is_over_is_not_used_again(scripted: Script, caller: Make, first: list[bytes]) -> None:
    daemon = scripted(first, answer(b"b"))
    call = caller(daemon)

    assert call("predict", "net") == b"a"
    daemon._threads[1].join()  # closed, and seen to be
    assert call("predict", "net") == b"b"
    assert [asked.connection for asked in daemon.asked] == [0, 1]


@pytest.mark.parametrize(("method", "done"), [("predict", "done"), ("stream", ["done"])])
def test_a_call_is_repeated_when_the_daemon_asks_for_it(
    scripted: Script, caller: Make, method: str, done: object
) -> None:
    full = failure(503, "full", retry_after="0")
    daemon = scripted(full, full, chunked(b"done", content_type="text/plain"))

    assert caller(daemon)(method, "net", "x") == done
    assert [asked.body for asked in daemon.asked] == [b"x"] * 3


def test_a_call_that_cannot_be_repeated_in_its_time_is_refused_at_once(scripted: Script, caller: Make) -> None:
    daemon = scripted(failure(503, "full", retry_after="60", x_request_id="7"))

    with pytest.raises(tsctl.Overloaded, match=r"full \(status 503, request 7\)") as caught:
        caller(daemon, deadline=30.0)("predict", "net", "x")

    assert caught.value.retry_after == 60
    assert len(daemon.asked) == 1


@pytest.mark.parametrize(
    "cut",
    [
        pytest.param(answer(b"abc")[:-1], id="within the length"),
        pytest.param(chunked(b"abc")[:-5], id="before the last chunk"),
        pytest.param(chunked(b"abc")[:-8], id="within a chunk"),
        pytest.param(answer(b"abc")[:10], id="within the headers"),
        pytest.param(b"", id="before it begins"),
        pytest.param(b"SSH-2.0-OpenSSH\r\n\r\n", id="no HTTP"),
    ],
)
@pytest.mark.parametrize("method", ["predict", "stream"])
def test_an_answer_that_breaks_off_is_an_error(scripted: Script, caller: Make, cut: bytes, method: str) -> None:
    daemon = scripted([cut, CLOSE])

    with pytest.raises(tsctl.UnreadableAnswer if cut.startswith(b"SSH") else tsctl.ConnectionLost):
        caller(daemon)(method, "net", "x")

    assert len(daemon.asked) == 1


def test_a_deadline_is_told_to_the_daemon_and_bounds_the_call(scripted: Script, caller: Make) -> None:
    daemon = scripted([answer(b"ab")[:-1], b""])
    began = time.monotonic()

    with pytest.raises(tsctl.DeadlineExceeded):
        caller(daemon)("predict", "net", "x", deadline=0.5)

    assert time.monotonic() - began >= 0.5
    assert 1 <= int(daemon.asked[0].headers["x-request-deadline-ms"]) <= 500


def test_a_daemon_that_sends_a_byte_now_and_then_does_not_lengthen_the_deadline(scripted: Script, caller: Make) -> None:
    pieces = [bytes([byte]) for byte in answer(b"x" * 1000)]
    daemon = scripted(pieces)
    pause = threading.Event()
    daemon.between = lambda: bool(pause.wait(0.002))

    with pytest.raises(tsctl.DeadlineExceeded):
        caller(daemon)("predict", "net", "x", deadline=0.03)


def test_a_stream_comes_in_pieces_of_text_and_of_another_type_is_bytes(scripted: Script, caller: Make) -> None:
    text = "añb".encode()
    daemon = scripted(
        chunked(text[:2], text[2:], content_type="text/plain"), chunked(b"\xff", content_type="application/x")
    )
    call = caller(daemon, token="sesame")

    assert "".join(call("stream", "net", "x")) == "añb"
    assert call("stream", "net") == [b"\xff"]
    assert daemon.asked[0].headers["authorization"] == "Bearer sesame"
    assert "x-request-deadline-ms" not in daemon.asked[0].headers


def test_a_refusal_before_the_body_is_read_is_told(scripted: Script, caller: Make, tmp_path: Path) -> None:
    daemon = scripted(failure(413, "too large", connection="close"))

    with pytest.raises(tsctl.ErrorAnswer, match="too large"):
        caller(daemon)("predict", "net", b"x" * 1_000_000)


@pytest.mark.parametrize("headers", [{"a": "b\r\nc: d"}, {"a b": "c"}, {"a": "é\n"}])
def test_a_header_that_is_two_is_not_sent(scripted: Script, caller: Make, headers: dict[str, str]) -> None:
    daemon = scripted(answer(b""))

    with pytest.raises(ValueError, match="cannot be sent"):
        caller(daemon)("predict", "net", headers=headers)

    assert daemon.asked == []


def test_registering_names_a_path_absolutely(
    scripted: Script, caller: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "net.mar").touch()
    monkeypatch.chdir(tmp_path)
    daemon = scripted(answer(b'{"status": "done"}', content_type="application/json"))

    done = caller(daemon)(
        "register", "net.mar", name="n", workers=2, batch_size=8, max_delay=0.05, replace=True,
        settings={"retry": True, "response_timeout": 5},
    )  # fmt: skip

    assert done == {"status": "done"}
    assert daemon.asked[0].line == (
        f"POST /models?url={str(tmp_path).replace('/', '%2F')}%2Fnet.mar&model_name=n&initial_workers=2&batch_size=8"
        "&max_batch_delay=50.0&replace=true&synchronous=true&warnings=true&retry=true&response_timeout=5 HTTP/1.1"
    )


@pytest.mark.parametrize(
    ("method", "arguments", "line", "answered", "returned"),
    [
        ("unregister", ["net/1.0"], "DELETE /models/net/1.0", {"status": "done"}, None),
        ("scale", ["net", 3], "PUT /models/net?min_worker=3&max_worker=3&synchronous=true", {"status": "done"}, None),
        ("describe", ["net"], "GET /models/net", [{"modelName": "net"}], {"modelName": "net"}),
    ],
)
def test_a_command_is_one_request(
    scripted: Script, caller: Make, method: str, arguments: list[object], line: str, answered: object, returned: object
) -> None:
    daemon = scripted(answer(json.dumps(answered).encode(), content_type="application/json"))

    assert caller(daemon)(method, *arguments) == returned
    assert daemon.asked[0].line == f"{line} HTTP/1.1"


@pytest.mark.parametrize(
    ("method", "arguments", "sentence"),
    [
        ("models", [], "manages no models: use the management address"),
        ("scale", ["net", 3], "manages no models: use the management address"),
        ("predict", ["net"], "answers no predictions: use the inference address"),
    ],
)
def test_a_call_to_the_other_address_names_the_kind_that_it_takes(
    scripted: Script, caller: Make, method: str, arguments: list[object], sentence: str
) -> None:
    daemon = scripted(failure(404, "Requested resource is not found", "ResourceNotFoundException"))

    with pytest.raises(tsctl.ErrorAnswer) as caught:
        caller(daemon)(method, *arguments)

    rest = ", which `tsctl status` names if there is one, or the control socket (status 404)"
    assert str(caught.value) == f"{daemon.path} {sentence}{rest}"


def test_all_pages_of_models_are_asked_for(scripted: Script, caller: Make) -> None:
    daemon = scripted(
        answer(
            b'{"nextPageToken": "2", "models": [{"modelName": "a"}, {"modelName": "b"}]}',
            content_type="application/json",
        ),
        answer(b'{"models": [{"modelName": "c"}]}', content_type="application/json"),
    )

    assert caller(daemon)("models") == ["a", "b", "c"]
    assert [asked.path for asked in daemon.asked] == ["/models", "/models?next_page_token=2"]


async def test_no_daemon_is_a_sentence_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(tsctl.CannotConnect, match=NOBODY):
        tsctl.Client(tmp_path / "none.sock").predict("net")
    with pytest.raises(tsctl.CannotConnect, match=NOBODY):
        await tsctl.AsyncClient(tmp_path / "none.sock").predict("net")


def test_both_clients_have_the_same_methods() -> None:
    import inspect

    for name, method in inspect.getmembers(tsctl.Client, inspect.isfunction):
        if not name.startswith("_"):
            other = getattr(tsctl.AsyncClient, name)
            assert list(inspect.signature(other).parameters) == list(inspect.signature(method).parameters)


def test_a_stream_that_is_left_early_closes_its_connection(scripted: Script) -> None:
    daemon = scripted([chunked(b"a", b"b")[:-10], b""], answer(b"c"))
    with tsctl.Client(daemon.path) as client:
        stream = client.stream("net")
        next(stream)
        stream.close()

        assert client.predict("net") == b"c"

    assert [asked.connection for asked in daemon.asked] == [0, 1]


def test_a_blocking_stream_outlives_the_event_loop_in_which_it_began(scripted: Script) -> None:
    whole = chunked(b"a", b"b")
    cut = whole.index(b"1\r\nb")
    daemon = scripted([whole[:cut], whole[cut:]])
    begun = threading.Event()
    daemon.between = begun.wait
    with tsctl.Client(daemon.path) as client:
        stream = client.stream("net")

        async def begin() -> str | bytes:
            return next(stream)

        first = asyncio.run(begin())
        begun.set()

        assert [first, *stream] == [b"a", b"b"]


def test_a_fork_has_connections_of_its_own(scripted: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    daemon = scripted(answer(b"a"), answer(b"b"))
    with tsctl.Client(daemon.path) as client:
        client.predict("net")
        monkeypatch.setattr(os, "getpid", lambda: -1)
        client.predict("net")

    assert [asked.connection for asked in daemon.asked] == [0, 1]
