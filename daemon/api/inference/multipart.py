"""Parser of multipart/form-data bodies, in slices of bounded cost.

    --BOUNDARY CRLF  headers CRLF CRLF  data CRLF --BOUNDARY CRLF  …  data CRLF --BOUNDARY--

    START ──boundary──▶ HEADERS ──blank line──▶ DATA ──boundary──▶ HEADERS
      └───last boundary──▶ ENDED ◀──last boundary──┘

RFC 7578 and RFC 2046, section 5.1, strictly: a boundary begins a line and ends it, and header lines end with CR LF.
A preamble, lines before the first boundary, and bytes after the last one are ignored. Data that holds its own boundary,
followed by other bytes, is rejected, as by TorchServe: two parsers could split such data differently.
The parts of a body in the arena stay there.
"""

import re
from typing import Final

from tsctl.daemon.api.inference.urlencoded import part_of
from tsctl.daemon.core.arena import Lease, Payload
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.job import Param

MOST_OPTIONS = 100


def parse_options(value: str) -> tuple[str, dict[str, str]]:
    """Parser of a header's value and its options: `form-data; name="k"; filename="x.png"`.

    The rules are those of python-multipart, which tests/api/inference/test_options.py compares with: a quote after a
    backslash does not end a value, names are case-insensitive, the last of repeated names wins, and names with `*` (RFC
    5987) are ignored: RFC 7578, section 4.2, forbids them in forms. But for `filename*`, which clients send all the
    same: a part with it is a file.

    Return a header's value in lower case, and its options by name; time in proportion to the value's length.

    Raises:
        BadRequest: the header has more than `MOST_OPTIONS` options.
    """
    if ";" not in value:
        return value.lower().strip(" \t"), {}
    pieces = value.split(";", MOST_OPTIONS + 1)
    if len(pieces) > MOST_OPTIONS + 1:
        raise BadRequest(
            f"The header `{value[:50]}` is broken: it has more than {MOST_OPTIONS} semicolons. Send fewer options."
        )
    kind = ""
    options: dict[str, str] = {}
    segment = ""
    quoted = False  # the previous piece left a quote open: the semicolon is part of a value
    first = True
    for piece in pieces:
        segment = f"{segment};{piece}" if quoted else piece
        if '"' in piece and (piece.count('"') - piece.count('\\"')) % 2:
            quoted = not quoted
        if quoted:
            continue
        if first:
            first, kind = False, _tidy(segment).lower()
        else:
            _add(options, segment)
    if quoted:  # an unclosed quote: the rest is its value
        if first:
            kind = _tidy(segment).lower()
        else:
            _add(options, segment)
    return kind, options


def _tidy(segment: str) -> str:
    name, equals, value = segment.partition("=")
    return (name.rstrip(" \t").lower() + "=" + value.lstrip(" \t") if equals else name).strip(" \t")


def _add(options: dict[str, str], segment: str) -> None:
    name, _, value = _tidy(segment).partition("=")
    if "*" in name and name != "filename*":
        return
    if len(value) >= 2 and value[0] == '"' and value[len(value) - 1] == '"':
        value = value[1 : len(value) - 1].replace("\\\\", "\\").replace('\\"', '"')
    options[name] = value


FILE_TYPE = "application/octet-stream"  # of a file part without a Content-Type
MOST_PARTS: Final = 256
MOST_BOUNDARY: Final = 256  # bytes
MOST_HEADER_BYTES: Final = 8192  # of one part, with the blank line
MOST_HEADERS: Final = 16  # of one part
MOST_PREAMBLE: Final = 8192  # bytes before the first boundary
# Bytes that are searched in one slice: 0.03 ms, and the copy as much (bytes.find, 2-core Xeon VM).
_SLICE: Final = 256 * 1024
_HEADERS_SLICE: Final = 32 * 1024  # bytes of headers that are parsed in one slice: 256 small parts take 1 ms
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 9110, section 5.6.2
_PADDING = re.compile(rb"[ \t]{0,64}\r\n")
_LINE_ENDS = re.compile(rb"[\r\n]{0,64}")

_FILE: Final = frozenset({"filename", "filename*"})  # the options of a part that is a file: RFC 2231 has the second

_START: Final = 0
_HEADERS: Final = 1
_DATA: Final = 2
_ENDED: Final = 3


class Multipart:
    """The parser of one body.

    Args:
        boundary: without its hyphens, 1 byte or more.

    Attributes:
        params: the parameters of the parts parsed so far, in their order; names may repeat.

    Raises:
        BadRequest: the boundary is too long.
    """

    def __init__(self, boundary: bytes, body: Payload) -> None:
        if len(boundary) > MOST_BOUNDARY:
            raise BadRequest(
                f"The multipart body is broken: its boundary has {len(boundary)} bytes, at most {MOST_BOUNDARY} count."
            )
        self.params: list[Param] = []
        self._body = body
        self._delimiter = b"\r\n--" + boundary
        self._state = _START
        self._at = 0  # bytes of the body parsed so far
        self._parts = 0
        self._begin = 0  # of the data of the part being read
        self._name = self._kind = ""

    def advance(self) -> bool:
        """Parse one slice; return whether that slice was the last.

        Raises:
            BadRequest: the body is malformed, is cut short, or exceeds a limit.
        """
        start, size = self._at, len(self._body)
        # The slice, and room for headers or a boundary that begin in the slice and end after.
        stop = min(size, start + _SLICE + MOST_HEADER_BYTES + len(self._delimiter))
        window = part_of(self._body, start, stop)
        end = min(len(window), _SLICE)
        position, headers = 0, _HEADERS_SLICE
        if self._state == _START:
            position = self._first(window)
        while self._state != _ENDED and position < end and headers > 0:
            if self._state == _HEADERS:
                after = self._head(window, position)
                headers -= after - position
                position = after
                self._begin, self._state = start + position, _DATA
            else:
                position = self._data(window, position, start)
        self._at = start + position
        if self._state == _ENDED:
            return True
        if self._at >= size:
            raise BadRequest("The multipart body is cut short: its last boundary is missing.")
        return False

    def _first(self, window: bytes) -> int:
        """Parse the first boundary; return its end."""
        leading = _LINE_ENDS.match(window)
        position = leading.end() if leading is not None else 0
        opening = self._delimiter[2:]
        if not window.startswith(opening, position):
            found = window.find(self._delimiter, 0, MOST_PREAMBLE + len(self._delimiter))
            if found >= 0:
                return self._after(window, found + len(self._delimiter))
            if opening.startswith(window[position : position + len(opening)]):
                raise BadRequest("The multipart body is cut short: its last boundary is missing.")
            raise _broken(f"its boundary is not in the first {MOST_PREAMBLE} bytes")
        return self._after(window, position + len(opening))

    def _data(self, window: bytes, position: int, start: int) -> int:
        """Search for the end of a part's data; return the position where the search ended."""
        delimiter = self._delimiter
        limit = _SLICE + len(delimiter) - 1
        found = window.find(delimiter, position, limit)
        if found < 0:
            return _SLICE if limit < len(window) else len(window)
        body, begin, end = self._body, self._begin, start + found
        value = body.part(begin, end) if isinstance(body, Lease) else body[begin:end]
        self.params.append(Param(self._name, self._kind, value))
        return self._after(window, found + len(delimiter))

    def _after(self, window: bytes, position: int) -> int:
        """Parse the rest of a boundary's line, or the two hyphens of the last boundary; return the end."""
        if window.startswith(b"\r\n", position):
            end = position + 2
        elif window.startswith(b"--", position):
            self._state = _ENDED
            return position + 2
        else:
            padding = _PADDING.match(window, position)
            if padding is None:
                if len(window) - position < 2:
                    raise BadRequest("The multipart body is cut short: its last boundary is missing.")
                raise _broken(f"its boundary is followed by `{_shown(window[position : position + 20])}`")
            end = padding.end()
        self._state = _HEADERS
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise BadRequest(f"The multipart body has more than {MOST_PARTS} parts. Send fewer.")
        return end

    def _head(self, window: bytes, position: int) -> int:
        """Parse the headers of a part; return where its data begins."""
        if window.startswith(b"\r\n", position):
            raise BadRequest("A part of the multipart body has no name.")
        end = window.find(b"\r\n\r\n", position, position + MOST_HEADER_BYTES)
        if end < 0:
            if len(window) - position < MOST_HEADER_BYTES:
                raise BadRequest("The multipart body is cut short: its last boundary is missing.")
            raise _broken(f"the headers of a part have more than {MOST_HEADER_BYTES} bytes")
        lines = window[position:end].split(b"\r\n")
        if len(lines) > MOST_HEADERS:
            raise _broken(f"a part has {len(lines)} headers, at most {MOST_HEADERS} are read")
        disposition, kind = b"", FILE_TYPE.encode()
        for line in lines:
            name, colon, value = line.partition(b":")
            if not colon or _NAME.fullmatch(name) is None or b"\r" in value or b"\n" in value:
                raise _broken(f"`{_shown(line[:100])}` is no header of a part")
            if len(name) == 19 and name.lower() == b"content-disposition":
                disposition = value
            elif len(name) == 12 and name.lower() == b"content-type":
                kind = value
        _, options = parse_options(disposition.decode("latin-1"))
        name_given = options.get("name")
        if not name_given:
            raise BadRequest("A part of the multipart body has no name.")
        self._name = name_given if name_given.isascii() else name_given.encode("latin-1").decode("utf-8", "replace")
        self._kind = kind.decode("latin-1").partition(";")[0].strip() if not _FILE.isdisjoint(options) else ""
        return end + 4


def _broken(why: str) -> BadRequest:
    return BadRequest(f"The multipart body is broken: {why}.")


def _shown(data: bytes) -> str:
    return ascii(data.decode("latin-1"))[1:-1]
