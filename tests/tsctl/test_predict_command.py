"""`tsctl predict`."""

import json
from pathlib import Path

import pytest

from tests.tsctl.conftest import Invoke
from tests.tsctl.fake_daemon import FakeDaemon
from tests.tsctl.python.scripted import chunked
from tsctl.commands.predict import is_text

ROUTE = "POST /predictions/net"


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "cat.jpg"
    path.write_bytes(b"\xff\xd8cat")
    return path


@pytest.mark.parametrize(
    ("body", "kind", "answer"),
    [
        (b'{"a": [1]}', "application/json", {"answer": {"a": [1]}}),
        (b"two words", "text/plain", {"answer": "two words"}),
        (b"\xff\x00", "image/png", {"base64": "/wA="}),
    ],
    ids=["JSON", "text", "bytes"],
)
@pytest.mark.parametrize(
    "arguments", [["--data", "x", "--json"], ["--json", "--data", "x"], ["--json", "[1]", "--json"]]
)
def test_json_without_a_value_prints_a_document(
    invoke: Invoke, daemon: FakeDaemon, body: bytes, kind: str, answer: dict[str, object], arguments: list[str]
) -> None:
    daemon.answer_body(ROUTE, body, kind)

    result = invoke("predict", "net", *arguments)

    document = json.loads(result.stdout)
    assert document.pop("seconds") > 0
    assert document == {"model": "net", "status": 200, "contentType": kind} | answer


def test_a_dash_is_stdin(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer(ROUTE, 1)

    invoke("predict", "net", "-", stdin=b"\x00from stdin")

    (request,) = daemon.requests
    assert request.body == b"\x00from stdin"
    assert "Content-Type" not in request.headers


@pytest.mark.parametrize(
    "answer", [chunked(b"begun")[:-5], b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbegun"], ids=["chunks", "a length"]
)
def test_an_answer_that_breaks_off_is_an_error_after_what_came(
    invoke: Invoke, daemon: FakeDaemon, image: Path, answer: bytes
) -> None:
    daemon.answer_raw(ROUTE, answer)

    result = invoke("predict", "net", image)

    assert (result.exit_code, result.stdout) == (1, "begun")
    assert "the connection to the daemon broke off" in result.stderr


class TestTerminal:
    @pytest.fixture(autouse=True)
    def terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda self: True, raising=False)

    @pytest.mark.parametrize("kind", ["image/png", ""])
    def test_a_binary_answer_is_told_and_not_written(
        self, invoke: Invoke, daemon: FakeDaemon, image: Path, kind: str
    ) -> None:
        daemon.answer_body(ROUTE, b"\x89PNG\x00" + b"x" * 2043, kind)

        result = invoke("predict", "net", image)

        named = f"of type {kind}" if kind else "without a content type"
        assert (result.exit_code, result.stdout) == (0, "")
        assert result.stderr == (
            f"The answer is binary, 2 KiB {named}, and is not written to a terminal; add `> FILE`\n"
        )

    def test_no_answer_is_an_empty_line(self, invoke: Invoke, daemon: FakeDaemon, image: Path) -> None:
        daemon.answer_body(ROUTE, b"", "")

        assert invoke("predict", "net", image).stdout == "\n"


@pytest.mark.parametrize(
    ("kind", "beginning", "shown"),
    [
        ("text/html", b"\xff", True),
        ("application/problem+json; charset=utf-8", b"", True),
        ("application/octet-stream", b"a", False),
        ("", b"", True),
        ("", b"a\tb\r\n", True),
        ("", "añ".encode(), True),
        pytest.param("", "añ".encode()[:-1], True, id="cut within a character"),
        pytest.param("", "a\U0001f600".encode()[:-1], True, id="cut within the longest character"),
        ("", b"\x80\x81", False),
        ("", b"a\xff", False),
        ("", b"\x1b[2J", False),
        ("", b"a\x00", False),
    ],
)
def test_what_a_terminal_is_shown(kind: str, beginning: bytes, shown: bool) -> None:
    assert is_text(kind, beginning) is shown
