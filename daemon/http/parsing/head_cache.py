"""Cache of a request head that a client sends again and again, with its parsed request.

Clients that keep a connection alive send heads that differ in the content length, if at all. Comparing costs 0.4 µs,
parsing such a head 6 to 15 (tests/lab/benchmarks/layers/http.py). The cache serves a whole request that came in one
piece, and the beginning of one whose body is received elsewhere; all others are parsed.
"""

import re

import msgspec

from daemon.http.messages import Request

_LENGTH = re.compile(rb"\r\ncontent-length: ([0-9]{1,8})(?=\r\n)", re.IGNORECASE)
_FRAMING = ("content-length", "transfer-encoding")
_DIGITS = 8  # at most: larger bodies do not come in one piece
LONGEST = 2048  # bytes of a head that is worth remembering


class Repeated(msgspec.Struct, frozen=True):
    """One head, and the request that it began.

    Attributes:
        before: its bytes up to the digits of its content length, or all of them.
        after: those after the digits; empty if it has no content length.
        digits: of the length that `request` had, `0` if it had none.
        request: without its body.
        place: of the content length among the headers of `request`.
    """

    before: bytes
    after: bytes
    digits: bytes
    request: Request
    place: int

    def beginning_of(self, data: bytes) -> tuple[bytes, bytes] | None:
        """Return the received body and the digits of its length, if `data` begins with this head; else None."""
        if not self.after:
            return (b"", self.digits) if data == self.before else None
        if not data.startswith(self.before):
            return None
        start = len(self.before)
        end = data.find(b"\r", start, start + _DIGITS + 1)
        if end < 0:
            return None  # cut within the digits, or before them
        digits = data[start:end]
        if not (digits.isdigit() and data.startswith(self.after, end)):
            return None
        return data[end + len(self.after) :], digits

    def headers_of(self, digits: bytes) -> list[tuple[str, str]]:
        """Return the headers, with this length."""
        headers = self.request.headers
        if digits == self.digits:
            return headers
        headers = headers.copy()
        headers[self.place] = headers[self.place][0], digits.decode()
        return headers


def know(head: bytes, request: Request) -> Repeated | None:
    """Return the remembered head; None if this head cannot be recognised again.

    Args:
        head: the bytes of one head, and no others.
        request: parsed from these bytes, without its body.
    """
    found = _LENGTH.search(head)
    framing = [index for index, (name, _) in enumerate(request.headers) if name.lower() in _FRAMING]
    if found is None:
        return None if framing else Repeated(head, b"", b"0", request, 0)
    if len(framing) != 1:
        return None
    return Repeated(head[: found.start(1)], head[found.end(1) :], found[1], request, framing[0])
