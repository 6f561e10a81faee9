"""Requests and responses, without a connection."""

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote

from daemon.errors import BadRequest, DaemonError, PredictionFailed
from daemon.job import Reply

JSON = ("Content-Type", "application/json")

# On every answer, as TorchServe does; a handler cannot change them.
_FIXED = (
    "Pragma: no-cache\r\n"
    "Cache-Control: no-cache; no-store, must-revalidate, private\r\n"
    "Expires: Thu, 01 Jan 1970 00:00:00 UTC\r\n"
)
_OURS = frozenset({
    "pragma", "cache-control", "expires", "connection", "content-length", "transfer-encoding", "x-request-id",
})  # fmt: skip
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 9110, section 5.6.2
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_BODILESS = frozenset({204, 304})
_UNPRINTABLE = dict.fromkeys((*range(9), *range(10, 32), 127), " ")  # CR and LF would end the header


def new_request_id() -> str:
    """Make a random UUID (version 4 in form). Not a secret, so the fast generator will do."""
    digits = f"{random.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


@dataclass(slots=True)
class Request:
    """One request, complete.

    Attributes:
        target: as sent, `/path?query`.
        headers: names and values as sent, in order.
        began, received: when its headers, and all of it, were complete, seconds on the daemon's clock.
        budget, priority: the headers `x-request-deadline-ms` and `x-request-priority` as sent, None without.
        peer: who sent it, for the access log.
    """

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes = b""
    http_1_0: bool = False
    keep_alive: bool = True
    began: float = 0.0
    received: float = 0.0
    budget: str | None = None
    priority: str | None = None
    peer: str = ""
    id: str = field(default_factory=new_request_id)

    @property
    def path(self) -> list[str]:
        """The path's segments, percent-decoded; empty ones at the end are dropped."""
        path = self.target.partition("?")[0]
        if not path.startswith("/") and "://" in path:  # absolute form: http://host/path
            path = "/" + path.partition("://")[2].partition("/")[2]
        segments = [unquote(segment) if "%" in segment else segment for segment in path.split("/")[1:]]
        while segments and not segments[-1]:
            segments.pop()
        return segments

    @property
    def query(self) -> dict[str, str]:
        """The query's parameters; of repeated ones the last counts."""
        return dict(parse_qsl(self.target.partition("?")[2], keep_blank_values=True))

    def header(self, name: str) -> str:
        """The value of a header, or an empty string; of repeated ones the last counts."""
        name = name.lower()
        for key, value in reversed(self.headers):
            if key.lower() == name:
                return value
        return ""

    def json(self) -> Any:
        """Raises: BadRequest, if the body is not JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise BadRequest(f"The body is not JSON: {error}") from None


@dataclass(slots=True)
class Response:
    """One answer."""

    status: int
    body: bytes = b""
    headers: Sequence[tuple[str, str]] = ()
    phrase: str = ""

    def head(self, request_id: str, *, keep_alive: bool, sized: bool = True, chunked: bool = False) -> bytes:
        """Encode everything before the body.

        Args:
            sized: the body is all there will be, so that its length can be told.
            chunked: the body comes in chunks.
        """
        lines = [f"HTTP/1.1 {self.status} {_clean(self.phrase) or _PHRASES.get(self.status, '')}\r\n"]
        for name, value in self.headers:
            if name.lower() not in _OURS and _TOKEN.fullmatch(name):
                lines.append(f"{name}: {_clean(value)}\r\n")
        lines.append(f"x-request-id: {request_id}\r\n")
        lines.append(_FIXED)
        lines.append("connection: keep-alive\r\n" if keep_alive else "connection: close\r\n")
        if chunked:
            lines.append("transfer-encoding: chunked\r\n")
        elif sized and self.status not in _BODILESS:
            lines.append(f"content-length: {len(self.body)}\r\n")
        lines.append("\r\n")
        return "".join(lines).encode("latin-1", "replace")

    @property
    def bodiless(self) -> bool:
        return self.status in _BODILESS


def _clean(text: str) -> str:
    return text if text.isprintable() else text.translate(_UNPRINTABLE)


def json_body(document: Any) -> bytes:
    """Encode as TorchServe prints JSON: two spaces, a newline at the end."""
    return json.dumps(document, indent=2).encode() + b"\n"


def json_response(document: Any, status: int = 200, headers: Sequence[tuple[str, str]] = ()) -> Response:
    return Response(status, json_body(document), (JSON, *headers))


def status_response(text: str, status: int = 200) -> Response:
    """TorchServe's answer to a command: one sentence."""
    return json_response({"status": text}, status)


def error_body(status: int, kind: str, message: str) -> dict[str, Any]:
    return {"code": status, "type": kind, "message": message}


def error_response(error: DaemonError) -> Response:
    retry = () if error.retry_after is None else (("Retry-After", str(error.retry_after)),)
    return json_response(error_body(error.status, error.kind, str(error)), error.status, (*retry, *error.headers))


def reply_response(reply: Reply) -> Response:
    """Make a job's reply an HTTP answer."""
    if not reply.error:
        if not 200 <= reply.status <= 999:  # three digits, and no interim answer: the client would wait for more
            return error_response(PredictionFailed(f"The handler chose the status {reply.status}, which is none."))
        return Response(reply.status, reply.body, reply.headers, reply.phrase)
    message = reply.body.decode("utf-8", "replace")
    retry = () if reply.retry_after is None else (("Retry-After", str(reply.retry_after)),)
    return json_response(error_body(reply.status, reply.error, message), reply.status, retry)
