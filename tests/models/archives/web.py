"""A web server on the loopback, for what is downloaded."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.kit.web import web_server


class Web:
    """Answers by path.

    Attributes:
        files: path → content.
        redirects: path → where it leads.
        claims: path → the Content-Length that is told instead of the true one; None for none at all.
        tags: path → the mark of its content, with which the rest can be asked for after a cut.
        asked: the paths, as they were asked for.
    """

    def __init__(self) -> None:
        self.url = ""
        self.files: dict[str, bytes] = {}
        self.redirects: dict[str, str] = {}
        self.claims: dict[str, int | None] = {}
        self.tags: dict[str, str] = {}
        self.asked: list[str] = []

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        path = handler.path
        self.asked.append(path)
        headers: Mapping[str, Any] = {"ETag": self.tags[path]} if path in self.tags else {}
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
def serving_web() -> Iterator[Web]:
    web = Web()
    with web_server(web.answer) as web.url:
        yield web
