"""Find where requests end in the received bytes, so that the parser is never fed bytes of two requests at once.

The parser does not report its position. Three features need a request's boundaries: a head that is remembered
(head_cache.py), the limit of unanswered requests, which is kept for each request, and the protocol that the first line
names: the parser takes `GET / RTSP/1.0` for HTTP/1.0.

A head and a chunked body end with an empty line, a body of known length ends where its length says. A chunk may
contain empty lines, too: a false boundary there costs one more call of the parser, and nothing else.
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
        self._line_open = False  # the first line of the present request has not ended
        self._tail = b""  # of a head or a chunked body that has arrived in part; empty for neither

    def end_of_blank(self, data: bytes, at: int) -> int:
        """Return the index after the empty lines that may precede a request."""
        size = len(data)
        while at < size and (data[at] == 13 or data[at] == 10):
            at += 1
        return at

    def end_of_head(self, data: bytes, at: int) -> int:
        """Return the index after the head that begins at `at`; -1 if `data` has only a part of the head."""
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
        """Return where a partly received head or chunked body may end; the end of `data` for no such place."""
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
        """Remember the end of the received bytes, which are a part of a head or of a chunked body.

        Args:
            begins: where in `data` that part begins; 0 if the part began before `data`.
        """
        tail = data[max(begins, len(data) - _TAIL) :]
        self._tail = tail if begins else (self._tail + tail)[-_TAIL:]

    def forget(self) -> None:
        """Forget the tail: the next bytes begin a request, or belong to a body of known length."""
        self._tail = b""

    def _read_line(self, data: bytes) -> None:
        text = self._tail + data
        line = text.find(b"\r\n")
        if line < 0:
            return
        self._line_open = False
        self.foreign = _is_foreign(text[:line])


def _is_foreign(line: bytes) -> bool:
    """Return whether the first line names one of the protocols that the parser knows beside HTTP."""
    return line[-9:].startswith(b" RTSP/") or line[-8:].startswith(b" ICE/")
