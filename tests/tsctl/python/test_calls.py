"""Addresses, deadlines and repetitions: decisions without a daemon."""

import math
from pathlib import Path
from typing import Any

import pytest

import tsctl
from tests.kit.said import said_in
from tsctl.python.answers import ReceivedAnswer
from tsctl.python.calls import (
    REPEAT_FOR,
    SPREAD,
    Call,
    model_path,
    models,
    other_address,
    predict,
    register,
    request_head,
    time_of,
)
from tsctl.python.transport.address import read_address
from tsctl.python.transport.link import Link, finish, open_link

BUSY = ReceivedAnswer(503, {"retry-after": "2"}, b"")


@said_in("addresses.txt")
def test_an_address(given: str) -> str:
    address = read_address(given)
    return f"{address}, Host: {address.host_header}"


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1:8080",
        "ftp://a",
        "http://",
        "http://a:99999",
        "http://user:secret@a",
        "http://a?token=x",
        "http://[::1",
        "/" + "x" * 200,
    ],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError):
        tsctl.Client(text)


@pytest.mark.parametrize("call", [models(None), predict("net", None, None, None, None)])
def test_where_a_path_is_not_known_behind_a_prefix_the_prefix_may_be_the_reason(call: Call) -> None:
    behind, direct = (other_address(call, read_address(f"http://a{prefix}")) for prefix in ("/serve/", ""))

    assert ", or a proxy must remove `/serve` from the path: use the " in behind
    assert "proxy" not in direct


def test_the_home_of_a_user_that_is_none_is_a_folder_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert str(read_address("~nobody.at.all/x")) == str(tmp_path / "~nobody.at.all" / "x")


def test_the_default_is_the_command_lines_socket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TSCTL_SOCKET", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert str(read_address(None)) == str(tmp_path / "tsctl" / "control.sock")

    monkeypatch.setenv("TSCTL_SOCKET", "/run/other.sock")
    assert str(read_address(None)) == "/run/other.sock"


@pytest.mark.parametrize(
    ("deadline", "now", "answer", "wait"),
    [
        pytest.param(None, 100.0, BUSY, 2.0, id="without a deadline as long as calls are repeated"),
        pytest.param(None, 100.0 + REPEAT_FOR - 2, BUSY, None, id="and not longer"),
        pytest.param(5.0, 100.0, BUSY, 2.0, id="within the deadline"),
        pytest.param(2.0, 100.0, BUSY, None, id="not if the deadline comes first"),
        pytest.param(9.0, 100.0, ReceivedAnswer(503, {}, b""), None, id="not without Retry-After"),
        pytest.param(9.0, 100.0, ReceivedAnswer(429, {"retry-after": "1"}, b""), None, id="nor another status"),
        pytest.param(9.0, 100.0, ReceivedAnswer(200, {"retry-after": "1"}, b""), None, id="least of all a good one"),
    ],
)
def test_when_a_call_is_repeated(
    deadline: float | None, now: float, answer: ReceivedAnswer, wait: float | None
) -> None:
    assert time_of(deadline, 100.0).wait(answer, now, 0.0) == wait


def test_clients_that_were_refused_together_return_apart() -> None:
    assert time_of(None, 0.0).wait(BUSY, 0.0, 1.0) == 2 * (1 + SPREAD)


def test_the_time_that_is_left() -> None:
    limit = time_of(2.0, 100.0)

    assert limit.left(101.5) == 0.5
    assert time_of(None, 100.0).left(1e9) is None
    with pytest.raises(tsctl.DeadlineExceeded):
        limit.left(102.0)


@pytest.mark.parametrize("deadline", [0, -1, math.inf, math.nan])
def test_a_deadline_is_more_than_nothing(deadline: float) -> None:
    with pytest.raises(ValueError, match="expected a number of seconds"):
        time_of(deadline, 0.0)


@pytest.mark.parametrize("model", ["", "a/", "/a", "a/b/c"])
def test_what_is_no_model(model: str) -> None:
    with pytest.raises(ValueError, match="neither MODEL nor MODEL/VERSION"):
        model_path(model)
    assert model_path("a b?/1.0") == "a%20b%3F/1.0"


@pytest.mark.parametrize("token", ["", " a", "a\nb", "ñ"])
def test_a_token_that_cannot_be_sent(token: str) -> None:
    with pytest.raises(ValueError, match="token"):
        tsctl.Client("/run/a.sock", token=token)


def test_no_token_is_shown() -> None:
    assert "sesame" not in repr(tsctl.Client("/run/a.sock", token="sesame"))


def test_an_empty_body_is_announced_only_by_methods_that_have_one() -> None:
    heads = [request_head(Call(method, "/", {}), read_address("http://a"), None) for method in ("GET", "POST")]

    assert [b"Content-Length: 0\r\n" in head for head in heads] == [False, True]


def test_a_registration_without_a_number_of_workers_has_one_unless_its_archive_says_otherwise() -> None:
    call = register("net.mar", None, None, None, None, None, False, None)

    assert call.target == "/models?url=net.mar&fallback_workers=1&synchronous=true&warnings=true"


@pytest.mark.parametrize(
    ("error", "kind", "sentence"),
    [
        (FileNotFoundError(2, "none"), tsctl.CannotConnect, "no daemon at `/run/a.sock`; start one"),
        (PermissionError(13, "denied"), tsctl.CannotConnect, "the daemon belongs to another user"),
        (TimeoutError(110, "timed out"), tsctl.CannotConnect, "cannot connect to `/run/a.sock`: timed out"),
        (TimeoutError(), tsctl.DeadlineExceeded, "the deadline passed"),
    ],
)
def test_a_connection_that_fails_says_why_and_one_that_breaks_is_lost_unless_its_time_is_over(
    error: OSError, kind: type[Exception], sentence: str
) -> None:
    class Broken:
        async def read(self, timeout: float | None) -> bytes:
            raise error

    async def connect(*asked: object) -> Any:
        raise error

    address, time = read_address("/run/a.sock"), time_of(None, 0.0)
    with pytest.raises(kind, match=sentence):
        finish(open_link(connect, address, None, time))
    with pytest.raises(kind if kind is tsctl.DeadlineExceeded else tsctl.ConnectionLost):
        finish(Link(address, Broken(), time).piece())  # type: ignore[arg-type]


def test_a_value_and_named_inputs_are_one_or_the_other() -> None:
    with pytest.raises(ValueError, match="one or the other"):
        predict("net", "x", {"a": 1}, None, None)
