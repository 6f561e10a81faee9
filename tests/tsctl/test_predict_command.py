"""`tsctl predict`."""

from pathlib import Path

import pytest

from tests.tsctl.conftest import Invoke
from tests.tsctl.fake_daemon import FakeDaemon

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
