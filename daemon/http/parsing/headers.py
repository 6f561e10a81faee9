"""The request headers that the daemon interprets: the body's length, and the client's expectations of the answer."""

from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.http.parsing.refusals import RequestRejected
from tsctl.daemon.http.parsing.target import check_host

NAMES = frozenset((
    b"host", b"content-length", b"transfer-encoding", b"expect", b"x-request-id", b"x-request-deadline-ms",
    b"x-request-priority", b"x-tsctl-timing", b"x-model-version", b"origin", b"content-encoding",
))  # fmt: skip
LENGTHS = frozenset(map(len, NAMES))  # so that most names need not be made lower case
_DIGITS = 20  # of the largest number that the parser takes
LONGEST_ID = 128  # characters of an `x-request-id` that is accepted from the client


class InterpretedHeaders:
    """The interpreted headers of one request.

    Attributes:
        length: bytes of the body; -1 if no header gives the length.
        chunked: the body comes in chunks.
        expects: the client waits for `100 Continue`; never in HTTP/1.0.
        id: the client's name for the request; empty if there is none, or none that can be used.
        origin: of the web page that asks; None without one.
        host: that such a page asks; empty if none is named, in HTTP/1.0.
        budget, priority, timed, model_version, coding: see Request; the codings of repeated headers are joined.
    """

    def __init__(self) -> None:
        self.length = -1
        self.chunked = self.expects = False
        self.id = ""
        self.budget: str | None = None
        self.priority: str | None = None
        self.timed = False
        self.model_version: str | None = None
        self.coding: str | None = None
        self.origin: str | None = None
        self.host = ""
        self._host = ""  # the last valid host: nearly always that of the request before

    def read(self, headers: list[tuple[bytes, str]], version: str) -> None:
        """Read the headers of another request.

        Args:
            headers: those whose names are in `NAMES`, with their names in lower case.
            version: of HTTP, `1.1` or `1.0`.

        Raises:
            BadRequest: the Host header is missing (in HTTP/1.1), repeated or invalid.
            BadRequest: HTTP/1.0 comes with a transfer encoding.
            RequestRejected: the transfer encoding (501) or the expectation (417) is not supported.
        """
        hosts, old = 0, version == "1.0"
        self.length = -1
        self.chunked = self.expects = False
        self.id = ""
        self.budget = self.priority = None
        self.timed = False
        self.model_version = self.origin = self.coding = None
        for name, value in headers:
            match name:
                case b"host":
                    hosts += 1
                    if value != self._host:
                        check_host(value)
                        self._host = value
                case b"content-length":
                    # The parser takes any number of zeros before those digits, and `int` raises for thousands.
                    self.length = int(value[-_DIGITS:]) if value.isdigit() else 0
                case b"transfer-encoding" if old:
                    raise BadRequest("HTTP/1.0 has no transfer encodings; send a Content-Length.")
                case b"transfer-encoding" if value.lower() != "chunked":
                    raise RequestRejected(
                        501, "BadRequestException", f"Unsupported transfer encoding `{value}`; expected `chunked`."
                    )
                case b"transfer-encoding":
                    self.chunked = True
                case b"expect" if value.lower() != "100-continue":
                    raise RequestRejected(
                        417, "BadRequestException", f"Unsupported expectation `{value}`; expected `100-continue`."
                    )
                case b"expect":
                    self.expects = not old
                case b"x-request-id":
                    self.id = value if len(value) <= LONGEST_ID and value.isascii() and value.isprintable() else ""
                case b"x-request-deadline-ms":
                    self.budget = value
                case b"x-request-priority":
                    self.priority = value
                case b"x-tsctl-timing":
                    self.timed = value == "1"
                case b"x-model-version":
                    self.model_version = value or None
                case b"content-encoding":
                    self.coding = value if self.coding is None else f"{self.coding}, {value}"
                case b"origin":
                    self.origin = value
        if hosts > 1 or (not hosts and not old):
            raise BadRequest(f"The request has {hosts} Host headers; expected one.")
        if self.origin is not None:
            self.host = self._host if hosts else ""
