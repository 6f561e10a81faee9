"""Something that answers on a Unix socket as the daemon would: canned answers, remembered requests."""

import json
import socket
import threading
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit


class Request(NamedTuple):
    """A client's request."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query))


class FakeDaemon:
    """One connection after the other, one request each.

    Attributes:
        requests: what was asked, in order.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.requests: list[Request] = []
        self._answers: dict[str, bytes] = {}
        self._otherwise = b""  # closes the connection
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def answer(self, line: str, document: Any, status: int = 200) -> None:
        """Answer requests that start with `line`, such as `GET /models`, with a JSON document."""
        self.answer_body(line, json.dumps(document).encode(), "application/json", status)

    def answer_body(self, line: str, body: bytes, content_type: str, status: int = 200) -> None:
        head = f"HTTP/1.1 {status} \r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
        self.answer_raw(line, head.encode() + body)

    def answer_raw(self, line: str, answer: bytes) -> None:
        """Answer with these bytes and close the connection."""
        self._answers[line] = answer

    def answer_anything(self, status: int, body: bytes) -> None:
        """Answer every other request with this JSON document."""
        head = f"HTTP/1.1 {status} \r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self._otherwise = head.encode() + body

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes `accept`
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as stream:
                method, target, _ = stream.readline().decode().split(" ")
                lines = iter(lambda: stream.readline().decode().strip(), "")
                headers = dict(line.split(": ", 1) for line in lines)
                body = stream.read(int(headers.get("Content-Length", 0)))
                self.requests.append(Request(method, target, headers, body))
                answer = self._answers.get(f"{method} {urlsplit(target).path}", self._otherwise)
                connection.sendall(answer)
