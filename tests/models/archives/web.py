"""A web server on the loopback, for what is downloaded."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Web:
    """Answers by path.

    Attributes:
        files: path → content.
        redirects: path → where it leads.
        claims: path → the Content-Length that is told instead of the true one; None for none at all.
        asked: the paths, as they were asked for.
    """

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.files: dict[str, bytes] = {}
        self.redirects: dict[str, str] = {}
        self.claims: dict[str, int | None] = {}
        self.asked: list[str] = []

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        path = handler.path
        self.asked.append(path)
        headers: Mapping[str, Any] = {}
        content, status = self.files.get(path, b""), 200 if path in self.files else 404
        if path in self.redirects:
            status, headers = 302, {"Location": self.redirects[path]}
        length = self.claims.get(path, len(content))
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        if length is not None:
            handler.send_header("Content-Length", str(length))
        handler.end_headers()
        handler.wfile.write(content)


@contextmanager
def web_server() -> Iterator[Web]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            web.answer(self)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
            """Tests print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        web = Web(server.server_port)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield web
        finally:
            server.shutdown()
            thread.join()
