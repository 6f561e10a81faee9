"""`tsctl predict`."""

import json
from pathlib import Path

import pytest

from tests.tsctl.conftest import Invoke
from tests.tsctl.fake_daemon import FakeDaemon
from tsctl.commands.predict import is_text

ROUTE = "POST /predictions/net"


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "cat.jpg"
    path.write_bytes(b"\xff\xd8cat")
    return path


def test_the_file_is_sent_and_the_answer_printed_as_it_is(invoke: Invoke, daemon: FakeDaemon, image: Path) -> None:
    daemon.answer_body(ROUTE, b"\x00\xff no newline", "application/octet-stream")

    result = invoke("predict", "net", image)

    (request,) = daemon.requests
    assert result.exit_code == 0
    assert result.stdout_bytes == b"\x00\xff no newline"
    assert result.stderr == ""
    assert request.body == b"\xff\xd8cat"


@pytest.mark.parametrize(
    ("body", "kind", "answer"),
    [
        (b'{"a": [1]}', "application/json", {"answer": {"a": [1]}}),
        (b"two words", "text/plain", {"answer": "two words"}),
        (b"\xff\x00", "image/png", {"base64": "/wA="}),
    ],
    ids=["JSON", "text", "bytes"],
)
@pytest.mark.parametrize("arguments", [["--data", "x", "--json"], ["--json", "--data", "x"]])
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
    ("name", "arguments", "expected"),
    [
        pytest.param("a.json", [], "application/json", id="JSON by its name"),
        pytest.param("a.txt", [], "text/plain", id="text by its name"),
        pytest.param("a.png", [], None, id="none for an image, which TorchServe hands on as bytes"),
        pytest.param("a.unheard-of", [], None, id="none for what nobody knows"),
        pytest.param("a.png", ["--content-type", "image/x"], "image/x", id="the one that is given"),
        pytest.param("a.json", ["--content-type", ""], None, id="none if it is given as empty"),
    ],
)
def test_the_content_type(
    invoke: Invoke, daemon: FakeDaemon, tmp_path: Path, name: str, arguments: list[str], expected: str | None
) -> None:
    daemon.answer(ROUTE, 1)
    (tmp_path / name).write_bytes(b"{}")

    invoke("predict", "net", tmp_path / name, *arguments)

    (request,) = daemon.requests
    assert request.headers.get("Content-Type") == expected


def test_a_version_is_part_of_the_path(invoke: Invoke, daemon: FakeDaemon, image: Path) -> None:
    daemon.answer("POST /predictions/net/2.0", 1)

    result = invoke("predict", "net/2.0", image)

    assert result.exit_code == 0


def test_a_refusal_of_the_daemon_is_its_message(invoke: Invoke, daemon: FakeDaemon, image: Path) -> None:
    daemon.answer(ROUTE, {"code": 503, "type": "X", "message": "Prediction failed: ValueError: too long"}, 503)

    result = invoke("predict", "net", image)

    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr == "error: Prediction failed: ValueError: too long\n"


@pytest.mark.parametrize("body", [b"Invalid response", b'["Invalid response"]', b'{"why": "Invalid response"}'])
def test_an_error_that_the_handler_chose_is_shown_with_its_body(
    invoke: Invoke, daemon: FakeDaemon, image: Path, body: bytes
) -> None:
    daemon.answer_body(ROUTE, body, "text/plain", 507)

    result = invoke("predict", "net", image)

    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr == f"error: the model answered with status 507\n\n{body.decode()}\n"


def test_a_file_that_is_not_there_is_named(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("predict", "net", tmp_path / "gone.jpg")

    assert result.exit_code == 1
    assert result.stderr == f"error: cannot read `{tmp_path}/gone.jpg`: No such file or directory\n"


def test_a_directory_is_no_file(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("predict", "net", tmp_path)

    assert result.exit_code == 1
    assert result.stderr == f"error: cannot read `{tmp_path}`: Is a directory\n"


@pytest.mark.parametrize(
    ("arguments", "body", "kind"),
    [
        (["--data", "añ"], "añ".encode(), "text/plain"),
        (["--data", ""], b"", "text/plain"),
        (["--json", '{"a": [1]}'], b'{"a": [1]}', "application/json"),
        (["--json", "1", "--content-type", "application/x"], b"1", "application/x"),
    ],
)
def test_an_input_on_the_command_line_has_its_type(
    invoke: Invoke, daemon: FakeDaemon, arguments: list[str], body: bytes, kind: str
) -> None:
    daemon.answer(ROUTE, 1)

    result = invoke("predict", "net", *arguments)

    (request,) = daemon.requests
    assert (result.exit_code, request.body, request.headers["Content-Type"]) == (0, body, kind)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no input; give one of FILE, `-` for stdin, --data TEXT, or --json JSON"),
        (["a.jpg", "--data", "x"], "FILE and --data exclude each other; give one of"),
        (["a.jpg", "--data", "x", "--json", "1"], "FILE and --data and --json exclude each other"),
        (["--json", "{'a': 1}"], "--json is not JSON: "),
        (["--json", "{'a': 1}"], "a text in JSON has double quotes"),
    ],
)
def test_the_input_is_given_once_and_is_what_it_says(invoke: Invoke, arguments: list[str], message: str) -> None:
    result = invoke("predict", "net", *arguments)

    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def chunks(*pieces: bytes, kind: str = "text/plain") -> bytes:
    body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (*pieces, b""))
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode() + body


def test_an_answer_in_pieces_is_printed_whole(invoke: Invoke, daemon: FakeDaemon, image: Path) -> None:
    daemon.answer_raw(ROUTE, chunks(b"a ", b"b"))

    assert invoke("predict", "net", image).stdout == "a b"


@pytest.mark.parametrize(
    "answer", [chunks(b"begun")[:-5], b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbegun"], ids=["chunks", "a length"]
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

    def test_a_text_ends_with_a_line(self, invoke: Invoke, daemon: FakeDaemon, image: Path) -> None:
        daemon.answer_body(ROUTE, b"a cat", "")

        assert invoke("predict", "net", image).stdout == "a cat\n"

    def test_json_is_printed_as_it_is(self, invoke: Invoke, daemon: FakeDaemon, image: Path) -> None:
        daemon.answer(ROUTE, {"a": "ñ"})

        assert json.loads(invoke("predict", "net", image).stdout) == {"a": "ñ"}

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
        ("", b"a\xff", True),
        ("", b"a\xffbcde", False),
        ("", b"\x1b[2J", False),
        ("", b"a\x00", False),
    ],
)
def test_what_a_terminal_is_shown(kind: str, beginning: bytes, shown: bool) -> None:
    assert is_text(kind, beginning) is shown
