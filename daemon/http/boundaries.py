"""Where the requests end in what has arrived, so that the parser never gets bytes of two at once.

The parser does not tell how far it has come. Yet three things need to know where a request begins and ends: a head
that is to be known again (repeated.py), the limit of unanswered requests, which is kept for each, and the protocol
that the first line names: the parser takes `GET / RTSP/1.0` for HTTP/1.0.

A head ends with an empty line, and so does a body in chunks; a body of known length, where that says. Within a chunk
there may be empty lines, too: a boundary there costs one more call of the parser, and nothing else.
"""

END = b"\r\n\r\n"
_TAIL = 16  # bytes: more than the protocol at the end of a first line, and than an empty line without its last byte


class Boundaries:
    """Finds the boundaries of one connection's requests.

    Attributes:
        foreign: the first line of the present request names another protocol than HTTP.
    """

    def __init__(self) -> None:
        self.foreign = False
        self._line_open = False  # that first line has not ended
        self._tail = b""  # of the head, or of the body in chunks, that has come in part; empty for neither

    def end_of_blank(self, data: bytes, at: int) -> int:
        """Return where the empty lines end that may come before a request."""
        size = len(data)
        while at < size and (data[at] == 13 or data[at] == 10):
            at += 1
        return at

    def end_of_head(self, data: bytes, at: int) -> int:
        """Return where the head that begins at `at` ends; -1 if `data` has only a part of it."""
        self.foreign = self._line_open = False
        line = data.find(b"\r\n", at)
        if line < 0:
            self._line_open = True
            return -1
        if not data.startswith(b" HTTP/", line - 9):
            self.foreign = _is_foreign(data[at:line])
        end = data.find(END, line)
        if end < 0:
            return -1
        return end + len(END)

    def end_of_part(self, data: bytes, at: int) -> int:
        """Return where a head or a body in chunks may end of which some has come; the end of `data` for nowhere."""
        if at == 0 and self._tail:
            if self._line_open:
                self._read_line(data)
            before = self._tail[-3:]
            end = (before + data[:3]).find(END)
            if end >= 0:
                return end + len(END) - len(before)
        end = data.find(END, max(0, at - 3))
        if end < 0:
            return len(data)
        return end + len(END)

    def keep(self, data: bytes, begins: int) -> None:
        """Remember the end of what has arrived, which is a part of a head or of a body in chunks.

        Args:
            begins: where in `data` that part begins; 0 for before it.
        """
        tail = data[max(begins, len(data) - _TAIL) :]
        self._tail = tail if begins else (self._tail + tail)[-_TAIL:]

    def forget(self) -> None:
        """Remember nothing: what comes next begins a request, or belongs to a body of known length."""
        self._tail = b""

    def _read_line(self, data: bytes) -> None:
        text = self._tail + data
        line = text.find(b"\r\n")
        if line < 0:
            return
        self._line_open = False
        self.foreign = _is_foreign(text[:line])


def _is_foreign(line: bytes) -> bool:
    """Whether the first line names one of the protocols that the parser knows beside HTTP."""
    return line[-9:].startswith(b" RTSP/") or line[-8:].startswith(b" ICE/")
