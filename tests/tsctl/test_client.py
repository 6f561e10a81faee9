"""HTTP over a Unix socket, and what the user is told when it goes wrong."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from tests.tsctl.fake_daemon import FakeDaemon
from tsctl.client import NDJSON, DaemonClient, DaemonResponse, checked, model_path
from tsctl.errors import CliError, NoDaemon

CUT = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"


def as_json(client: DaemonClient) -> object:
    return client.json("GET", "/x")


def as_answer(client: DaemonClient) -> object:
    return client.request("GET", "/x")


def as_events(client: DaemonClient) -> object:
    return list(client.events("GET", "/x"))


every_way = pytest.mark.parametrize("ask", [as_json, as_answer, as_events])


def test_a_request_brings_method_target_headers_and_body(daemon: FakeDaemon) -> None:
    daemon.answer_body("POST /predictions/net", b"\x00\xff", "image/png", 507)

    answer = DaemonClient().request("POST", "/predictions/net", b"body", {"Content-Type": "text/plain"})

    (request,) = daemon.requests
    assert answer == DaemonResponse(507, "image/png", b"\x00\xff")
    assert (request.method, request.target, request.body) == ("POST", "/predictions/net", b"body")
    assert request.headers["Content-Type"] == "text/plain"
    assert request.headers["Connection"] == "close"


def test_parameters_are_a_query_without_those_that_are_none(daemon: FakeDaemon) -> None:
    daemon.answer("POST /models", {"message": "queued"}, 202)
    daemon.answer_raw("GET /x", b"HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\n3")

    assert DaemonClient().json("POST", "/models", url="/a b/ä&c.mar", workers=2, handler=None) == {"message": "queued"}
    assert DaemonClient().request("GET", "/x") == DaemonResponse(200, "", b"3")
    assert daemon.requests[0].query == {"url": "/a b/ä&c.mar", "workers": "2"}


@pytest.mark.parametrize("document", [{"message": ""}, {}, "text"])
def test_a_refusal_without_a_message_still_says_something(document: object) -> None:
    with pytest.raises(CliError) as refused:
        checked(418, document)
    assert refused.value.message == (document if document == "text" else "the daemon answered with status 418")


def test_events_come_line_by_line(daemon: FakeDaemon) -> None:
    chunks = b'd\r\n{"stage": 1}\n\r\n1a\r\n{"stage": 2}\n{"stage": 3}\n\r\n0\r\n\r\n'
    daemon.answer_raw("POST /models", EVENTS + chunks)

    events = list(DaemonClient().events("POST", "/models", url="a.mar"))

    (request,) = daemon.requests
    assert events == [{"stage": 1}, {"stage": 2}, {"stage": 3}]
    assert request.headers["Accept"] == NDJSON
    assert request.query == {"url": "a.mar"}


def test_a_refusal_instead_of_events_is_an_error(daemon: FakeDaemon) -> None:
    daemon.answer("POST /models", {"message": "Model not found: a.mar"}, 404)

    with pytest.raises(CliError, match=r"^Model not found: a\.mar$"):
        list(DaemonClient().events("POST", "/models"))


@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        pytest.param(as_json, CUT, id="a document"),
        pytest.param(as_answer, CUT, id="an answer"),
        pytest.param(as_events, EVENTS + b'e\r\n{"stage": "lo', id="within an event"),
        pytest.param(as_events, CUT, id="a refusal instead of events"),
        *(pytest.param(ask, b"", id=f"no answer {ask.__name__}") for ask in (as_json, as_answer, as_events)),
    ],
)
def test_an_answer_that_breaks_off_is_an_error_with_a_hint(
    daemon: FakeDaemon, ask: Callable[[DaemonClient], object], answer: bytes
) -> None:
    daemon.answer_raw("GET /x", answer)

    with pytest.raises(CliError) as broken:
        ask(DaemonClient())
    assert type(broken.value) is CliError
    assert broken.value.message.startswith("the connection to the daemon broke off: ")
    assert broken.value.hint == "see `tsctl logs`"


@pytest.mark.parametrize("ask", [as_json, as_events])
def test_an_answer_that_is_no_json_is_an_error(daemon: FakeDaemon, ask: Callable[[DaemonClient], object]) -> None:
    daemon.answer_body("GET /x", b"<html>", "text/html")

    with pytest.raises(CliError, match=r"the daemon at `.*control\.sock` did not answer with JSON"):
        ask(DaemonClient())


@every_way
@pytest.mark.parametrize("path", ["nothing.sock", "left.sock", "file/control.sock"])
def test_where_nobody_listens_is_no_daemon(tmp_path: Path, ask: Callable[[DaemonClient], object], path: str) -> None:
    (tmp_path / "file").touch()
    with socket.socket(socket.AF_UNIX) as left:  # by a dead daemon
        left.bind(str(tmp_path / "left.sock"))

    with pytest.raises(NoDaemon, match="no daemon at"):
        ask(DaemonClient(tmp_path / path))


def test_a_socket_of_another_user_is_not_ours_to_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tsctl.client._UnixConnection.connect", refused)

    with pytest.raises(CliError, match=r"^not allowed to use `.*`: the daemon belongs to another user$"):
        DaemonClient(tmp_path / "theirs.sock").json("GET", "/x")


def test_a_daemon_of_another_user_that_hangs_up_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hung_up(self: object) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    path = tmp_path / "theirs.sock"
    path.touch()
    monkeypatch.setattr("tsctl.client._UnixConnection.connect", hung_up)
    with pytest.raises(CliError, match="the connection to the daemon broke off"):
        DaemonClient(path).json("GET", "/x")
    monkeypatch.setattr(os, "getuid", lambda: path.stat().st_uid + 1)

    with pytest.raises(CliError, match=r"^not allowed to use `.*`: the daemon belongs to another user$"):
        DaemonClient(path).json("GET", "/x")


def test_a_full_disk_behind_the_output_is_no_broken_connection(daemon: FakeDaemon) -> None:
    daemon.answer("GET /x", {})

    with (
        pytest.raises(OSError, match="No space left on device"),
        DaemonClient(daemon.path).exchange("GET", "/x", None, {}) as response,
        open("/dev/full", "wb", 0) as full,
    ):
        full.write(response.read())


@every_way
def test_a_daemon_that_does_not_answer_in_time_is_an_error(
    tmp_path: Path, ask: Callable[[DaemonClient], object]
) -> None:
    path = tmp_path / "deaf.sock"
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(path))
        deaf.listen()

        with pytest.raises(CliError, match=r"^the daemon at `.*deaf\.sock` does not answer$"):
            ask(DaemonClient(path, timeout=0.01))


def test_a_socket_path_that_the_kernel_cannot_take_is_told_with_its_length(tmp_path: Path) -> None:
    path = tmp_path / ("x" * (108 - len(str(tmp_path)) - 1))

    with pytest.raises(CliError, match="the socket path has 108 bytes, and a Unix socket takes at most 107"):
        DaemonClient(path).json("GET", "/x")


@pytest.mark.parametrize(
    ("model", "path"),
    [("resnet", "resnet"), ("resnet/1.0", "resnet/1.0"), ("résumé", "r%C3%A9sum%C3%A9"), ("a b/1+1", "a%20b/1%2B1")],
)
def test_a_model_is_a_path(model: str, path: str) -> None:
    assert model_path(model) == path


@pytest.mark.parametrize("model", ["", "/", "a/", "/1.0", "a/b/c"])
def test_what_is_no_model_is_wrong_usage(model: str) -> None:
    with pytest.raises(click.BadParameter, match="is neither MODEL nor MODEL/VERSION"):
        model_path(model)
