"""A head that is known again (http/repeated.py): the same requests as when every head is parsed.

The bytes are what arrives at once, each twice, with `~~` and a line feed between.
"""

from daemon.errors import DaemonError
from daemon.http.messages import Request
from daemon.http.receiver import Receiver
from tests.fuzz.target import Target
from tests.fuzz.targets.receiver import LIMITS, STREAMS, WORDS, Told, told
from tests.http.peer import GET, get, post

_BETWEEN = b"~~\n"


class _Reader:
    """A receiver on a connection that keeps going as long as one does."""

    def __init__(self, compares: bool) -> None:
        self.requests: list[Request] = []
        on_head = None if compares else lambda request: None  # who asks for each head has each parsed
        self.receiver = Receiver(LIMITS, lambda: 7.0, self._take, lambda: None, None, on_head)
        self.refusal = ""

    def _take(self, request: Request) -> None:
        self.requests.append(request)
        if not request.keep_alive:
            self.receiver.leave()

    def feed(self, piece: bytes) -> None:
        if self.receiver.closed:
            return
        try:
            self.receiver.feed(piece)
        except DaemonError as error:
            self.refusal = f"{error.status} {error}"
            self.receiver.leave()

    @property
    def said(self) -> tuple[list[tuple[Told, str, str]], str, bool, bool]:
        requests = [(told(request), _named(request), request.content_type) for request in self.requests]
        return requests, self.refusal, self.receiver.begun, self.receiver.closed


def _named(request: Request) -> str:
    """The id, if the client gave it."""
    return request.id if request.id == request.header("x-request-id") else "ours"


def check(data: bytes) -> None:
    compares, parses = _Reader(True), _Reader(False)
    for piece in data.split(_BETWEEN):
        for _ in range(2):
            compares.feed(piece)
            parses.feed(piece)
            assert compares.said == parses.said
    ours = [request.id for request in compares.requests if _named(request) == "ours"]
    assert len(set(ours)) == len(ours), "two requests have one id"


_NAMED = post(b"abc", "X-Request-Id: a", "Content-Type: text/plain")
_LENGTHS = [post(b"a" * size, "content-type: a/b") for size in (1, 9, 10, 0)]
TARGET = Target(
    check,
    [
        GET + _BETWEEN + get("/b"),
        _BETWEEN.join(_LENGTHS),
        _BETWEEN.join([post(b"a" * LIMITS.max_body), post(b"a" * (LIMITS.max_body + 1))]),
        _BETWEEN.join([_LENGTHS[0], _LENGTHS[0] + GET, _LENGTHS[0] + b"a"]),
        _BETWEEN.join([_NAMED, _NAMED.replace(b"abc", b"xyz"), post(b"a", "x-request-deadline-ms: 5")]),
        _BETWEEN.join([_LENGTHS[0], _LENGTHS[0][:-20], _LENGTHS[0][-20:], _LENGTHS[1] + GET]),
        post(b"abc", "Content-Length: 3") + _BETWEEN + b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        *(data for data in STREAMS if len(data) < 200),
    ],
    [*WORDS, _BETWEEN],
)
