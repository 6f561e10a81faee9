"""Requests of a browser over a pair of sockets, and a daemon that answers as told behind them."""

import http.client
import io
import json
import re
import socket
import stat
import threading
import tomllib
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.places import ROOT
from tests.tsctl.fake_daemon import FakeDaemon
from tsctl.client import DaemonClient
from tsctl.daemon import paths
from tsctl.extensions.console.checks import BrowserSession
from tsctl.extensions.console.entrance import Entrance
from tsctl.extensions.console.page import GUARDS, LARGEST, PageHandler
from tsctl.extensions.console.places import LINES, LONGEST, HeldConnections
from tsctl.tuning.saved_results import save

PORT = 8765
OWN = {"Host": f"127.0.0.1:{PORT}", "Origin": f"http://127.0.0.1:{PORT}"}
STATIC = files("tsctl.extensions.console") / "static"


class Answer:
    """A response of the page."""

    def __init__(self, data: bytes) -> None:
        response = http.client.HTTPResponse(_Bytes(data))  # type: ignore[arg-type]
        response.begin()
        self.status, self.headers = response.status, response.headers
        self.incomplete = False
        try:
            self.body = response.read()
        except http.client.IncompleteRead as error:
            self.body, self.incomplete = error.partial, True


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, *_: Any) -> io.BytesIO:
        return io.BytesIO(self._data)


class Browser:
    """Sends requests to a page; has the secret once it has entered, unless told otherwise."""

    def __init__(self, path: Path, token: str = "") -> None:
        self.session = BrowserSession(token)
        self.secret = ""
        self.state_dir = path.parent / "state"
        self._server = SimpleNamespace(
            own=OWN["Host"], session=self.session, daemon=DaemonClient(path, 10.0), state_dir=self.state_dir,
            places=HeldConnections(1),
        )  # fmt: skip

    def enter(self, token: str | None = None) -> Answer:
        answer = self.ask("POST", "/enter", (token or self.session.token).encode())
        self.secret = json.loads(answer.body).get("secret", self.secret)
        return answer

    def ask(self, method: str, target: str, body: bytes = b"", /, **headers: str) -> Answer:
        known = {"Authorization": self.secret and f"Bearer {self.secret}"}
        sent = OWN | known | {"Content-Length": str(len(body)), "Connection": "close"} | headers
        head = "".join(f"{name}: {value}\r\n" for name, value in sent.items() if value)
        ours, theirs = socket.socketpair()
        with ours:
            serving = threading.Thread(target=self._serve, args=(theirs,))
            serving.start()
            ours.sendall(f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode() + body)
            ours.shutdown(socket.SHUT_WR)
            data = b"".join(iter(lambda: ours.recv(65536), b""))
            serving.join()
        return Answer(data)

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            PageHandler(connection, ("127.0.0.1", 1), self._server)  # type: ignore[arg-type]


@pytest.fixture
def stranger(daemon: FakeDaemon) -> Browser:
    """A browser that has not entered."""
    return Browser(daemon.path)


@pytest.fixture
def browser(stranger: Browser) -> Browser:
    stranger.enter()
    return stranger


def test_no_answer_sets_a_cookie_and_none_is_looked_at(stranger: Browser, daemon: FakeDaemon) -> None:
    """Browsers send cookies to all ports of an address, also to those where other users listen."""
    token = stranger.session.token
    answers = [stranger.ask("GET", "/"), stranger.enter(token), stranger.ask("GET", "/api/settings")]
    secret, stranger.secret = stranger.secret, ""

    replayed = stranger.ask("GET", "/api/status", Cookie=f"tsctl_console_{PORT}={secret}; Authorization={secret}")

    assert [each.headers["Set-Cookie"] for each in answers] == [None] * 3
    assert replayed.status == 401 and daemon.requests == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({"Origin": "http://evil.example"}, 403, id="from another site"),
        pytest.param({"Content-Length": "100000"}, 413, id="too large"),
        pytest.param({"Content-Length": "-1"}, 413, id="a negative length"),
        pytest.param({"Content-Length": "9" * 5000}, 413, id="more digits than Python's integers take"),
    ],
)
def test_who_signs_in_is_checked_before_the_token(daemon: FakeDaemon, headers: dict[str, str], status: int) -> None:
    browser = Browser(daemon.path, "a-token-of-the-operator")

    assert browser.ask("POST", "/enter", b"a-token-of-the-operator", **headers).status == status


@pytest.mark.parametrize("target", ["/api/status", "/api/settings", "/api/tuned", "/api/logs/a/1", "/api/nothing"])
def test_a_stranger_gets_nothing(stranger: Browser, daemon: FakeDaemon, target: str) -> None:
    for headers in ({}, {"Authorization": "Bearer "}, {"Authorization": f"Bearer {stranger.session.token}"}):
        assert stranger.ask("GET", target, b"", **headers).status == 401
        assert stranger.ask("POST", target, b"", **headers).status == 401
        assert stranger.ask("PATCH", target, b"", **headers).status == 401
    assert daemon.requests == []


def test_the_pages_own_files_are_for_everybody_and_hold_no_secret(stranger: Browser) -> None:
    answers = [stranger.ask("GET", target, b"", Origin="") for target in ("/", "/main.js", "/session.js")]

    assert [each.status for each in answers] == [200] * 3
    assert not any(stranger.session.token.encode() in each.body for each in answers)


def test_a_question_reaches_the_daemon_and_its_answer_the_page(browser: Browser, daemon: FakeDaemon) -> None:
    daemon.answer("GET /tsctl/status", {"models": []})

    answer = browser.ask("GET", "/api/status")

    assert (answer.status, json.loads(answer.body)) == (200, {"models": []})
    assert answer.headers["X-Tsctl-Content-Type"] == "application/json"
    assert "authorization" not in {name.lower() for name in daemon.requests[0].headers}


def test_the_results_of_tune_are_there(browser: Browser, daemon: FakeDaemon) -> None:
    assert json.loads(browser.ask("GET", "/api/tuned").body) == []
    save(browser.state_dir, {"model": "a", "version": "1", "time": 5.0})

    (found,) = json.loads(browser.ask("GET", "/api/tuned").body)

    assert found["model"] == "a"
    assert daemon.requests == []


def test_the_last_lines_of_a_log_are_there(browser: Browser, daemon: FakeDaemon) -> None:
    assert json.loads(browser.ask("GET", "/api/logs/a/1").body) == {"lines": []}
    file = paths.model_log(browser.state_dir, "a", "1")
    file.parent.mkdir(parents=True)
    lines = [f"2026-01-31T12:00:00.000+01:00 7 stdout line {number}\n" for number in range(LINES + 50)]
    file.write_text("".join(lines) + "x" * 5000)

    told = json.loads(browser.ask("GET", "/api/logs/a/1").body)["lines"]

    assert len(told) == LINES and told[0].endswith("stdout line 51") and len(told[-1]) == LONGEST + 1
    assert daemon.requests == []


@pytest.mark.parametrize(
    "target", ["/api/logs/a", "/api/logs/../1", "/api/logs/a%2F..%2Fb/1", "/api/logs/a/..", "/api/logs/a/%ff"]
)
def test_no_other_file_is_read_as_a_log(browser: Browser, daemon: FakeDaemon, target: str) -> None:
    assert browser.ask("GET", target).status == 404
    assert daemon.requests == []


def test_a_prediction_keeps_its_bytes_type_and_time_and_is_never_a_page_nor_taken_for_whole(
    browser: Browser, daemon: FakeDaemon
) -> None:
    body = bytes(range(256)) * 1000
    head = b"HTTP/1.1 200 \r\nContent-Type: text/html\r\nServer-Timing: total;dur=34.0\r\nContent-Length: "
    sent = {"Content-Type": "image/png", "X-Tsctl-Timing": "1"}
    daemon.answer_raw("POST /predictions/a/2", head + b"7\r\n\r\n<script")
    daemon.answer_raw("POST /predictions/a/3", head + b"9\r\n\r\n<script")

    answer, cut = (browser.ask("POST", f"/api/predictions/a/{version}", body, **sent) for version in (2, 3))

    headers = {name.lower(): value for name, value in daemon.requests[0].headers.items()}
    assert daemon.requests[0].body == body
    assert (headers["content-type"], headers["x-tsctl-timing"]) == ("image/png", "1")
    assert (answer.body, answer.incomplete, cut.body, cut.incomplete) == (b"<script", False, b"<script", True)
    assert answer.headers["Server-Timing"] == "total;dur=34.0"
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Disposition"] == "attachment"


def test_a_daemon_that_is_away_is_told_as_such(browser: Browser, daemon: FakeDaemon) -> None:
    daemon.path.unlink()

    answer = browser.ask("GET", "/api/status")

    assert answer.status == 502 and "no daemon" in json.loads(answer.body)["message"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({"Content-Length": str(LARGEST + 1)}, 413, id="too large"),
        pytest.param({"Content-Length": ""}, 411, id="no length"),
        pytest.param({"Content-Length": "-1"}, 411, id="a negative length"),
        pytest.param({"Content-Length": "x"}, 411, id="no number"),
        pytest.param({"Content-Length": "9" * 5000}, 413, id="more digits than Python's integers take"),
        pytest.param({"Content-Length": "²"}, 411, id="a digit that is none in HTTP"),
        pytest.param({"Transfer-Encoding": "chunked"}, 411, id="in chunks"),
    ],
)
def test_a_body_is_bounded(browser: Browser, daemon: FakeDaemon, headers: dict[str, str], status: int) -> None:
    assert browser.ask("POST", "/api/predictions/a", b"", **headers).status == status
    assert daemon.requests == []


def test_every_answer_is_guarded(browser: Browser, stranger: Browser, daemon: FakeDaemon) -> None:
    daemon.answer("GET /tsctl/status", {})
    answers = [browser.ask("GET", target) for target in ("/", "/main.js", "/api/status", "/nothing", "/enter")]

    for answer in answers:
        assert {name: answer.headers[name] for name in GUARDS} == GUARDS
    assert "unsafe" not in GUARDS["Content-Security-Policy"]
    assert GUARDS["Content-Security-Policy"].startswith("default-src 'none'")


@pytest.mark.parametrize(
    "target", ["/../page.py", "/uplot/../../page.py", "/static/main.js", "/uplot/LICENSE", "/missing.js", "/.js"]
)
def test_only_files_of_the_page_are_files(browser: Browser, target: str) -> None:
    assert browser.ask("GET", target).status == 404


def test_the_page_asks_for_nothing_elsewhere_and_has_no_markup_from_strings() -> None:
    texts = {each.name: each.read_text() for each in STATIC.iterdir() if each.is_file()}

    assert len(texts) > 10
    for name, text in texts.items():
        assert set(re.findall(r"https?://[\w.:-]+", text)) <= {"http://www.w3.org", "http://127.0.0.1:8080"}, name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), (
            name
        )
        assert not re.search(r"<style|\sstyle=|\son\w+=", text) or name.endswith(".js"), name
        assert 'setAttribute("style"' not in text and "javascript:" not in text, name


def test_the_page_is_small_and_keeps_the_licence_of_its_charts() -> None:
    sizes = [file.stat().st_size for file in Path(str(STATIC)).rglob("*") if file.is_file()]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert sum(sizes) <= 150 * 1024
    assert "MIT License" in (STATIC / "uplot" / "LICENSE").read_text()
    licences = [file for name in project["license-files"] for file in ROOT.glob(name)]
    assert ROOT / "tsctl/extensions/console/static/uplot/LICENSE" in licences


def test_the_redirect_file_is_for_its_user_alone_and_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    session = BrowserSession()
    token = session.token
    entrance = Entrance(f"http://127.0.0.1:{PORT}", session)

    assert stat.S_IMODE(entrance.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(entrance.file.parent.stat().st_mode) == 0o700
    assert f"/#enter={token}" in entrance.file.read_text()
    session.claim(token)
    assert stat.S_IMODE(entrance.file.stat().st_mode) == 0o600
    assert f"/#enter={session.token}" in entrance.file.read_text() and token not in entrance.file.read_text()
    entrance.close()
    entrance.close()
    assert list(tmp_path.iterdir()) == []


def test_the_browser_is_told_the_file_and_not_the_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("webbrowser.open", lambda url: not opened.append(url))  # type: ignore[func-returns-value]
    monkeypatch.setenv("DISPLAY", ":0")
    session = BrowserSession()
    entrance = Entrance(f"http://127.0.0.1:{PORT}", session)

    assert entrance.open()
    assert opened == [entrance.file.as_uri()]
    assert session.token not in opened[0]
