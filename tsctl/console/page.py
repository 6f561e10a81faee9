"""One request of a browser: checked, then answered from the page's files or by the daemon.

What the daemon and handlers say is never a page: it is sent as bytes to download, its type in a header for our own
script, so that a browser that is led to it shows nothing.
"""

import json
import re
import socket
import sys
import threading
from contextlib import AbstractContextManager
from http.client import HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from socketserver import TCPServer
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

from tsctl.console.allowed import ANSWERING, ASKING, allowed
from tsctl.console.checks import BrowserSession, refusal
from tsctl.console.listening import Listening
from tsctl.console.settings import settings_document
from tsctl.errors import CliError
from tsctl.tuning.saved import saved

LARGEST = 64 << 20  # bytes of a request's body
PATIENCE = 60.0  # seconds that a browser may take for its request
PIECE = 64 * 1024  # bytes
CONNECTIONS = 128
FORM = 8192  # bytes of the form with the token
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
GUARDS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
ENTERED = b'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=/"><title>tsctl</title>\n'
CLOSED = "This page needs the cookie of its browser. Open the file that `tsctl console` named, or start it again.\n"
_TYPES = {
    "css": "text/css; charset=utf-8", "html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}  # fmt: skip
# The form may be sent; with `no-referrer` it would be sent with the origin `null`.
_FORM = {
    "Content-Security-Policy": POLICY.replace("form-action 'none'", "form-action 'self'"),
    "Referrer-Policy": "same-origin",
}
_BEFORE_THE_DOOR = frozenset({"/style.css", "/icon.svg"})
_STATIC = re.compile(r"/(?:uplot/)?[a-z]+\.(?:css|js|svg)")


class Upstream(Protocol):
    """The daemon behind a control socket."""

    def exchange(
        self, method: str, target: str, body: bytes | None, headers: dict[str, str]
    ) -> AbstractContextManager[HTTPResponse]:
        """Send a request; the block reads the response."""


class PageServer(ThreadingHTTPServer):
    """The listener; a thread for each connection, of which there are at most `CONNECTIONS`.

    Args:
        at: the address; its port is 0 for one that is free.
        state_dir: the daemon's, where the results of `tsctl tune` are.

    Attributes:
        port: the port it listens on.

    Raises:
        OSError: the port is taken.
    """

    daemon_threads = True

    def __init__(self, at: Listening, daemon: Upstream, state_dir: Path) -> None:
        self.address_family = socket.AF_INET6 if ":" in at.address else socket.AF_INET
        super().__init__((at.address, at.port), PageHandler)
        self.port: int = self.server_address[1]
        self.daemon = daemon
        self.state_dir = state_dir
        self.session = BrowserSession(self.port, at.token, secure=at.tls is not None)
        self._tls = at.tls
        self._places = threading.BoundedSemaphore(CONNECTIONS)

    def server_bind(self) -> None:
        """Bind without asking for the machine's name, which nobody needs."""
        TCPServer.server_bind(self)

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; its thread does the handshake, within `PATIENCE`."""
        connection, peer = super().get_request()
        if self._tls is not None:
            connection = self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, peer

    def process_request(self, request: Any, client_address: Any) -> None:
        """Begin the connection's thread, or close a connection beyond the limit."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection to its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print an error of this process, but not that a browser left."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class PageHandler(BaseHTTPRequestHandler):
    """The requests of one connection."""

    protocol_version = "HTTP/1.1"
    timeout = PATIENCE
    server: PageServer
    request: socket.socket

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        session = self.server.session
        entering = url.path == "/enter" and not session.lasting
        if session.lasting and url.path in _BEFORE_THE_DOOR and not self._unwelcome():
            self._static(url.path)
            return
        if not self._welcome(entering=entering):
            return
        if entering:
            cookie = session.claim(parse_qs(url.query).get("token", [""])[0])
            if not cookie:
                self._refuse(403, "The token has been used, or belongs to another page. Start `tsctl console` again.\n")
                return
            self._answer(200, _TYPES["html"], ENTERED, {"Set-Cookie": cookie})
        elif url.path == "/":
            self._static("/index.html")
        elif url.path == "/api/settings":
            self._answer(200, "application/json", json.dumps(settings_document()).encode())
        elif url.path == "/api/tuned":
            self._answer(200, "application/json", json.dumps(saved(self.server.state_dir)).encode())
        elif url.path.startswith("/api/"):
            self._pass_on()
        elif _STATIC.fullmatch(url.path):
            self._static(url.path)
        else:
            self._refuse(404, "Not found.\n")

    def do_POST(self) -> None:
        if self.server.session.lasting and self.command == "POST" and self.path == "/enter":
            self._sign_in()
        elif self._welcome():
            self._pass_on()

    do_PATCH = do_POST  # noqa: N815

    def _unwelcome(self, *, entering: bool = False) -> str:
        """Return why the request is refused whatever its cookie; empty if it is not."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        server = self.server
        return refusal(self.command, headers, server.port, entering=entering, secure=server.session.secure)

    def _welcome(self, *, entering: bool = False) -> bool:
        """Return whether the request may be answered; refuse the request if not."""
        session = self.server.session
        if why := self._unwelcome(entering=entering):
            self._refuse(403, f"Refused: {why}.\n")
        elif not entering and not session.knows(self.headers.get("Cookie", "")):
            if session.lasting and self.command == "GET" and self.path == "/":
                self._ask_for_token(401, "This page needs the token of its operator.")
            else:
                self._refuse(401, CLOSED)
        else:
            return True
        return False

    def _sign_in(self) -> None:
        if why := self._unwelcome():
            self._refuse(403, f"Refused: {why}.\n")
            return
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit() or int(length) > FORM:
            self._refuse(413, "The form is too large.\n")
            return
        given = parse_qs(self.rfile.read(int(length)).decode("latin-1")).get("token", [""])[0]
        if cookie := self.server.session.claim(given.strip()):
            self._answer(200, _TYPES["html"], ENTERED, {"Set-Cookie": cookie})
        else:
            self._ask_for_token(403, "That is not the token.")

    def _ask_for_token(self, status: int, words: str) -> None:
        self.close_connection = True  # a body was perhaps not read
        page = (files("tsctl.console") / "static" / "signin.html").read_text().replace("WORDS", words)
        self._answer(status, _TYPES["html"], page.encode(), _FORM | {"Connection": "close"})

    def _static(self, path: str) -> None:
        file = files("tsctl.console") / "static" / path.removeprefix("/")
        if file.is_file():
            self._answer(200, _TYPES[path.rpartition(".")[2]], file.read_bytes())
        else:
            self._refuse(404, "Not found.\n")

    def _pass_on(self) -> None:
        """Send the request to the daemon if the page may ask it; send the answer back, piece by piece."""
        asked = allowed(self.command, self.path)
        if asked is None:
            self._refuse(404, "This page cannot ask that of the daemon.\n")
            return
        body = self._body()
        if body is None:
            return
        headers = {name: value for name in ASKING if (value := self.headers.get(name))}
        begun = False
        try:
            with self.server.daemon.exchange(asked.method, asked.target, body or None, headers) as response:
                begun = True
                self._pass_back(response)
        except CliError as error:
            if begun:  # the page must not take a part for the whole
                self.close_connection = True
            else:
                self._answer(502, "application/json", json.dumps({"message": error.message}).encode())

    def _pass_back(self, response: HTTPResponse) -> None:
        self.send_response(response.status)
        for name, value in GUARDS.items():
            self.send_header(name, value)
        for name in ANSWERING:
            if told := response.getheader(name):
                self.send_header(name, told)
        self.send_header("X-Tsctl-Content-Type", response.getheader("Content-Type") or "")
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Disposition", "attachment")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while piece := response.read1(PIECE):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        if response.length:
            raise CliError("the answer broke off")
        self.wfile.write(b"0\r\n\r\n")

    def _body(self) -> bytes | None:
        """Return the request's body; refuse the request and return None if its length is unknown or too large."""
        if self.command == "GET":
            return b""
        length = self.headers.get("Content-Length", "0" if self.command == "PATCH" else "")
        if not length.isascii() or not length.isdigit() or "Transfer-Encoding" in self.headers:
            self._refuse(411, "The body needs a Content-Length.\n")
            return None
        if int(length) > LARGEST:
            self._refuse(413, f"The body is larger than {LARGEST >> 20} MiB.\n")
            return None
        body = self.rfile.read(int(length))
        return body if len(body) == int(length) else None

    def _refuse(self, status: int, text: str) -> None:
        self.close_connection = True  # the body was not read
        self._answer(status, "text/plain; charset=utf-8", text.encode(), {"Connection": "close"})

    def _answer(self, status: int, kind: str, body: bytes, more: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (GUARDS | {"Content-Type": kind, "Content-Length": str(len(body))} | (more or {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def version_string(self) -> str:
        """Return the header `Server`, without versions."""
        return "tsctl"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Keep silent: the token is in a request's line."""
