"""HTTP over the control socket: blocking, one request a connection."""

import http.client
import json
import os
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from urllib.parse import quote, urlencode

import click

from tsctl.daemon import paths
from tsctl.errors import CliError, NoDaemon
from tsctl.streams import FULL

NDJSON = "application/x-ndjson"
SSE = "text/event-stream"


class DaemonResponse(NamedTuple):
    status: int
    content_type: str
    body: bytes


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float | None) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class DaemonClient:
    """The daemon behind one control socket.

    Args:
        timeout: seconds that a read or write may take; None for no limit.
        headers: of every request.
    """

    def __init__(
        self, path: Path | None = None, timeout: float | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        self.path = path or paths.default_socket()
        self._headers = {**(headers or {}), "Connection": "close"}
        self._timeout = timeout

    def request(
        self, method: str, target: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> DaemonResponse:
        """Send a request and read the response, for any status.

        Raises:
            NoDaemon: no daemon listens on the socket.
            CliError: the connection failed.
        """
        with self.exchange(method, target, body, headers or {}) as response:
            return DaemonResponse(response.status, response.getheader("Content-Type") or "", response.read())

    def json(self, method: str, target: str, **parameters: Any) -> Any:
        """Send a request with query parameters (None is left out); return the JSON document.

        Raises:
            NoDaemon: no daemon listens on the socket.
            CliError: the daemon rejected the request, or the connection failed.
        """
        answer = self.request(method, target + _query(parameters))
        return checked(answer.status, self._document(answer.body))

    def events(self, method: str, target: str, **parameters: Any) -> Iterator[dict[str, Any]]:
        """Send a request and yield the daemon's progress, line by line.

        Raises:
            NoDaemon: no daemon listens on the socket.
            CliError: the daemon rejected the request, or the connection failed.
        """
        return self._documents(method, target + _query(parameters), NDJSON)

    def server_sent(self, target: str, **parameters: Any) -> Iterator[dict[str, Any]]:
        """Send a GET for a stream of server-sent events, and yield the documents as they come, until the stream ends.

        Of an answer that is no stream, yield the one document.

        Raises:
            NoDaemon: no daemon listens on the socket.
            CliError: the daemon rejected the request, or the connection failed.
        """
        return self._documents("GET", target + _query(parameters), SSE, b"data:", whole=True)

    def _documents(
        self, method: str, target: str, kind: str, begins: bytes = b"", *, whole: bool = False
    ) -> Iterator[dict[str, Any]]:
        """Yield the documents of a stream's lines that begin so; of an answer of another kind the `whole`, or none."""
        with self.exchange(method, target, None, {"Accept": kind}) as response:
            if response.getheader("Content-Type") != kind:
                document = checked(response.status, self._document(response.read()))
                yield from [document] if whole else []
                return
            while line := response.readline():
                if line.startswith(begins):
                    yield self._document(line.removeprefix(begins))

    @contextmanager
    def exchange(
        self, method: str, target: str, body: bytes | None, headers: dict[str, str]
    ) -> Iterator[http.client.HTTPResponse]:
        """Send a request; the block reads the response, which may break off too.

        Raises:
            NoDaemon: no daemon listens on the socket.
            CliError: the connection failed, before the response or within it.
        """
        connection = _UnixConnection(self.path, self._timeout)
        try:
            paths.check_socket_path(self.path)
            connection.request(method, target, body, headers | self._headers)
            with connection.getresponse() as response:
                yield response
        except paths.PathError as error:
            raise CliError(str(error)) from None
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
            raise NoDaemon(self.path) from None
        except PermissionError:
            raise CliError(f"not allowed to use `{self.path}`: the daemon belongs to another user") from None
        except TimeoutError:
            raise CliError(f"the daemon at `{self.path}` does not answer") from None
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, OSError) and error.errno in FULL:  # the block's, which writes what it reads
                raise
            if isinstance(error, BrokenPipeError | http.client.RemoteDisconnected) and _foreign(self.path):
                raise CliError(f"not allowed to use `{self.path}`: the daemon belongs to another user") from None
            raise CliError(f"the connection to the daemon broke off: {error}", "see `tsctl logs`") from None
        finally:
            connection.close()

    def _document(self, text: bytes) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            raise CliError(f"the daemon at `{self.path}` did not answer with JSON", "see `tsctl logs`") from None


def pieces_of(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """Yield a body as it comes; an error of the exchange if it breaks off."""
    while piece := response.read1(64 * 1024):
        yield piece
    if response.length:  # which `read1` does not tell
        raise http.client.IncompleteRead(b"", response.length)


def checked(status: int, document: Any) -> Any:
    """Return the document of a good response.

    Raises:
        CliError: the status is 400 or more; the first line of its message, the rest as details.
    """
    if status < 400:
        return document
    if not isinstance(document, dict):
        document = {"message": str(document)}
    first, _, details = document.get("message", "").partition("\n")
    raise CliError(
        first or f"the daemon answered with status {status}",
        details=details.strip("\n"),
        kind=document.get("type", ""),
    )


def refuse(status: int, body: bytes | str, said: str) -> NoReturn:
    """Raise for a prediction that was answered with 400 or more.

    Args:
        said: what is true of an answer that is the handler's own; its body follows.
    """
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    if not isinstance(document, dict) or "message" not in document:
        text = body if isinstance(body, str) else body.decode("utf-8", "replace")
        document = {"message": f"{said} with status {status}\n{text}"}
    checked(status, document)
    raise AssertionError(status)


def content_of(file: Path) -> bytes:
    """Return what is in a file, or comes on stdin for `-`.

    Raises:
        CliError: the file cannot be read.
    """
    try:
        return sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise CliError(f"cannot read `{file}`: {error.strerror}") from None


def content_type_of(file: Path) -> str:
    """Guess a file's content type by its name: JSON and text, which are decoded for handlers; else none."""
    import mimetypes

    guessed = mimetypes.guess_type(file.name)[0] or ""
    return guessed if guessed == "application/json" or guessed.startswith("text/") else ""


def model_path(model: str) -> str:
    """Return the path of `MODEL` or `MODEL/VERSION` below `/models` or `/predictions`.

    Raises:
        click.BadParameter: the text is neither.
    """
    parts = model.split("/")
    if len(parts) > 2 or not all(parts):
        raise click.BadParameter(f"`{model}` is neither MODEL nor MODEL/VERSION")
    return "/".join(quote(part, safe="", errors="surrogateescape") for part in parts)


def _foreign(socket_file: Path) -> bool:
    """Return whether a socket belongs to another user, whose daemon closes our connections; root may use any."""
    try:
        return os.getuid() not in (0, socket_file.stat().st_uid)
    except OSError:
        return False


def _query(parameters: dict[str, Any]) -> str:
    given = {name: value for name, value in parameters.items() if value is not None}
    return "?" + urlencode(given, errors="surrogateescape") if given else ""
