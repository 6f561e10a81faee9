"""One request of a browser: checked, then answered from the page's files or by the daemon.

What the daemon and handlers say is never a page: it is sent as bytes to download, its type in a header for our own
script, so that a browser that is led to it shows nothing.
"""

import io
import json
import re
import socket
import sys
from http.client import HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from socketserver import TCPServer
from typing import Any
from urllib.parse import urlsplit

from tsctl.client import DaemonClient, pieces_of
from tsctl.errors import CliError
from tsctl.extensions.console.checks import BrowserSession, body_length, refusal
from tsctl.extensions.console.listening import Listening
from tsctl.extensions.console.places import HeldConnections, TimedReading, log_document
from tsctl.extensions.console.request_filter import ANSWERING, ASKING, allowed, logged_version, settings_document
from tsctl.tuning.saved_results import saved

LARGEST = 64 << 20  # bytes of a request's body
PATIENCE = 60.0  # seconds that a browser may take for its request, and for a piece of an answer
FIRST = 10.0  # seconds until the end of a new connection's first head
SLOWEST = 64 * 1024  # bytes of a body in each second beyond `PATIENCE`
CONNECTIONS = 128
TOKEN = 8192  # bytes of a body with a token
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
CLOSED = "This tab has no session. Open the file that `tsctl console` named, or start it again."
UNKNOWN = "This page needs the token of its operator."
USED = "The token has been used, or belongs to another page. Open the file that `tsctl console` named."
WRONG = "That is not the token."
_TYPES = {
    "css": "text/css; charset=utf-8", "html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}  # fmt: skip
_STATIC = re.compile(r"/(?:uplot/)?[a-z]+\.(?:css|js|svg)")


class PageServer(ThreadingHTTPServer):
    """The listener; a thread for each connection, of which there are at most `CONNECTIONS` (see places.py).

    Args:
        at: the address; its port is 0 for one that is free.
        state_dir: the daemon's, where the results of `tsctl tune` are.

    Attributes:
        port: the port it listens on.
        own: address and port, as in the page's URL.

    Raises:
        OSError: the port is taken.
    """

    daemon_threads = True
    request_queue_size = CONNECTIONS

    def __init__(self, at: Listening, daemon: DaemonClient, state_dir: Path) -> None:
        self.address_family = socket.AF_INET6 if ":" in at.address else socket.AF_INET
        super().__init__((at.address, at.port), PageHandler)
        self.port: int = self.server_address[1]
        self.daemon = daemon
        self.state_dir = state_dir
        self.own = urlsplit(at.url(self.port)).netloc
        self.session = BrowserSession(at.token, secure=at.tls is not None)
        self.places = HeldConnections(CONNECTIONS)
        self._tls = at.tls

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
        """Begin the connection's thread, or close the connection if all others are being answered."""
        if self.places.admit(request, client_address[0]):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection to its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.places.leave(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print an error of this process, but not that a browser left."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class PageHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = PATIENCE
    server: PageServer
    request: socket.socket

    def setup(self) -> None:
        """Read with a deadline for each request."""
        super().setup()
        self.rfile.close()
        self.reading = TimedReading(self.connection, PATIENCE)
        self.rfile = io.BufferedReader(self.reading)
        self.reading.within(FIRST)

    def handle_one_request(self) -> None:
        """Answer a request; its head is there in time, or the connection ends."""
        try:
            super().handle_one_request()
        finally:
            self.server.places.answered(self.request)
            self.reading.within(PATIENCE)

    def do_GET(self) -> None:
        path = self._path()
        if not path or not self._welcome(opening=path == "/"):
            return
        if path == "/":
            self._static("/index.html")
        elif not path.startswith("/api/"):
            self._static(path)
        elif not self._known():
            return
        elif path == "/api/settings":
            self._answer(200, "application/json", json.dumps(settings_document()).encode())
        elif path == "/api/tuned":
            self._answer(200, "application/json", json.dumps(saved(self.server.state_dir)).encode())
        elif (version := logged_version(self.path)) is not None:
            self._answer(200, "application/json", json.dumps(log_document(self.server.state_dir, *version)).encode())
        else:
            self._pass_on()

    def do_POST(self) -> None:
        path = self._path()
        if not path or not self._welcome():
            return
        if self.command == "POST" and path == "/enter":
            self._enter()
        elif self._known():
            self._pass_on()

    do_PATCH = do_POST  # noqa: N815

    def _path(self) -> str:
        """Return the path that is asked for; refuse the request and return an empty text if there is none."""
        try:
            path = urlsplit(self.path).path
        except ValueError:  # of a foreign text: "http://["
            path = ""
        if not path.startswith("/"):
            self._refuse(400, "That is not the address of a page.\n")
            return ""
        return path

    def _welcome(self, *, opening: bool = False) -> bool:
        """Return whether the request may be answered if it has the secret; refuse the request if not."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        server = self.server
        why = refusal(self.command, headers, server.own, opening=opening, secure=server.session.secure)
        if why:
            self._refuse(403, f"Refused: {why}.\n")
        return not why

    def _known(self) -> bool:
        """Return whether the request has the secret; refuse the request if not."""
        session = self.server.session
        if not session.knows(self.headers.get("Authorization", "")):
            self._tell(401, {"message": UNKNOWN if session.lasting else CLOSED, "byToken": session.lasting})
            return False
        self.server.places.answering(self.request)
        return True

    def _enter(self) -> None:
        """Answer the secret for a token."""
        session = self.server.session
        length = body_length(self.headers.get("Content-Length", ""), TOKEN)
        if length is None or length > TOKEN:
            self._refuse(413, "The token is too large.\n")
            return
        if secret := session.claim(self.rfile.read(length).decode("latin-1").strip()):
            self._answer(200, "application/json", json.dumps({"secret": secret}).encode())
        else:
            self._tell(403, {"message": WRONG if session.lasting else USED})

    def _static(self, path: str) -> None:
        file = files("tsctl.extensions.console") / "static" / path.removeprefix("/")
        if (path == "/index.html" or _STATIC.fullmatch(path)) and file.is_file():
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
        for piece in pieces_of(response):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def _body(self) -> bytes | None:
        """Return the request's body; refuse the request and return None if its length is unknown or too large."""
        if self.command == "GET":
            return b""
        length = body_length(self.headers.get("Content-Length", "0" if self.command == "PATCH" else ""), LARGEST)
        if length is None or "Transfer-Encoding" in self.headers:
            self._refuse(411, "The body needs a Content-Length.\n")
            return None
        if length > LARGEST:
            self._refuse(413, f"The body is larger than {LARGEST >> 20} MiB.\n")
            return None
        self.reading.within(PATIENCE + length / SLOWEST)
        body = self.rfile.read(length)
        return body if len(body) == length else None

    def _tell(self, status: int, document: dict[str, Any]) -> None:
        """Refuse the request in words for the page's script."""
        self.close_connection = True  # a body was perhaps not read
        self._answer(status, "application/json", json.dumps(document).encode(), {"Connection": "close"})

    def _refuse(self, status: int, text: str) -> None:
        self.close_connection = True  # the body was not read
        self._answer(status, "text/plain; charset=utf-8", text.encode(), {"Connection": "close"})

    def _answer(self, status: int, kind: str, body: bytes, more: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (GUARDS | {"Content-Type": kind, "Content-Length": str(len(body))} | (more or {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse a request that is not one of HTTP, or has a method of no use here."""
        self._refuse(code, f"{message or explain or 'Refused'}.\n")

    def version_string(self) -> str:
        """Return the header `Server`, without versions."""
        return "tsctl"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Keep silent: a request's line is a foreign text."""
