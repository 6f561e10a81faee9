"""The headers that say something to us: where the body ends, and what the client expects of the answer."""

from daemon.errors import BadRequest
from daemon.http.refusals import Refused
from daemon.http.target import check_host

NAMES = frozenset((
    b"host", b"content-length", b"transfer-encoding", b"expect", b"x-request-id", b"x-request-deadline-ms",
    b"x-request-priority",
))  # fmt: skip
LENGTHS = frozenset(map(len, NAMES))  # so that most names need not be made lower case
LONGEST_ID = 128  # characters of an `x-request-id` that is taken from the client


class Ours:
    """What these headers of one request say.

    Attributes:
        length: bytes of the body; -1 if no header tells.
        chunked: the body comes in chunks.
        expects: the client waits for `100 Continue`; never in HTTP/1.0.
        id: the client's name for the request; empty if it gave none that can be used.
        budget, priority: see Request.
    """

    def __init__(self) -> None:
        self.length = -1
        self.chunked = self.expects = False
        self.id = ""
        self.budget: str | None = None
        self.priority: str | None = None
        self._host = ""  # the last that was found to be one: nearly always that of the request before

    def read(self, headers: list[tuple[bytes, str]], version: str) -> None:
        """Read them anew.

        Args:
            headers: those whose names are in `NAMES`, with their names in lower case.
            version: of HTTP, `1.1` or `1.0`.

        Raises:
            DaemonError: what they say is refused.
        """
        hosts, old = 0, version == "1.0"
        self.length = -1
        self.chunked = self.expects = False
        self.id = ""
        self.budget = self.priority = None
        for name, value in headers:
            match name:
                case b"host":
                    hosts += 1
                    if value != self._host:
                        check_host(value)
                        self._host = value
                case b"content-length":
                    self.length = int(value) if value.isdigit() else 0
                case b"transfer-encoding" if old:
                    raise BadRequest("HTTP/1.0 has no transfer encodings.")
                case b"transfer-encoding" if value.lower() != "chunked":
                    raise Refused(501, "BadRequestException", f"The transfer encoding `{value}` is not understood.")
                case b"transfer-encoding":
                    self.chunked = True
                case b"expect" if value.lower() != "100-continue":
                    raise Refused(417, "BadRequestException", f"The expectation `{value}` cannot be met.")
                case b"expect":
                    self.expects = not old
                case b"x-request-id":
                    self.id = value if len(value) <= LONGEST_ID and value.isascii() and value.isprintable() else ""
                case b"x-request-deadline-ms":
                    self.budget = value
                case b"x-request-priority":
                    self.priority = value
        if hosts > 1 or (not hosts and not old):
            raise BadRequest("A request needs one Host header.")
