"""The body of the request that is being received, and where a request ends in the received bytes."""

from typing import Final

from tsctl.daemon.core.arena import SHARED_FROM, Lease, Payload, Storage, Unshared, gather

END = b"\r\n\r\n"
_TAIL = 16  # bytes: more than the protocol at the end of a first line, and than an empty line without its last byte


class Boundaries:
    """Finds the boundaries of one connection's requests, so that the parser is never fed bytes of two at once.

    The parser does not report its position. Three features need a request's boundaries: a head that is remembered
    (head.py), the limit of unanswered requests, and the protocol that the first line names: the parser takes
    `GET / RTSP/1.0` for HTTP/1.0. A head and a chunked body end with an empty line, a body of known length ends where
    its length says. A chunk may contain empty lines, too: a false boundary there costs one more call of the parser.

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


_NOWHERE: Final = memoryview(b"")
CHEAP = 64 * 1024  # bytes of a body that are copied to free arena memory: 5 µs
FIRST = 4 * 1024**2  # bytes of a body in chunks that are copied when it is longer: 3 ms


class Body:
    """The received part of a body: in memory, or of a large one where it stays, in the arena.

    One object serves all requests of a connection.

    Args:
        storage: where large bodies are received; None for ordinary memory.
        most: bytes of the longest body.

    Attributes:
        length: of the body, as announced; -1 if it comes in chunks, or its head is not complete.
        count: received bytes.
        began: when its head was complete, in seconds on the daemon's clock.
        place: where a large body is received; None for another.
    """

    def __init__(self, storage: Storage | None, most: int) -> None:
        self.length = -1
        self.count = 0
        self.began = 0.0
        self.place: Lease | Unshared | None = None
        self._storage = storage
        self._most = most
        self._room = 0  # bytes of a body in chunks for which a place was asked for
        self._data: bytes | bytearray = b""
        self._view = _NOWHERE  # of the place

    def begin_request(self) -> None:
        """Note that another request has begun, whose head is not complete."""
        self.length = -1
        self.count = self._room = 0
        self._data = b""

    def take_place(self, length: int) -> bool:
        """Take a place for a body of this length; return whether it is large and there is one."""
        if length < SHARED_FROM or self._storage is None:
            return False
        place = self._storage.take(length, self)
        if place is not None:
            self._set_place(place)
        return place is not None

    def space(self) -> memoryview:
        """Return where the rest of a body with a place belongs, and no other bytes."""
        space = self._view[self.count :]
        if not space:  # the rest of its place was given up
            self._leave_arena()
            space = self._view[self.count :]
        return space

    def add_bytes(self, data: bytes) -> None:
        """Add received bytes: to its place, or to those that came before."""
        size = self.count + len(data)
        if size > self._room and size >= SHARED_FROM and self.length < 0 and self._storage is not None:
            self._make_room(size, self._storage)
        if self.place is not None:
            if size > len(self._view):
                self._leave_arena()
            self._view[self.count : size] = data
        elif not self._data:
            self._data = data  # most come in one piece
        else:
            if isinstance(self._data, bytes):
                self._data = bytearray(self._data)
            self._data += data  # not a list: chunks of two bytes would cost twenty times their size
        self.count = size

    def take_body(self) -> Payload:
        """Return the complete body, and keep nothing of it."""
        place = self.place
        if place is not None:
            self.drop()
            if isinstance(place, Unshared):
                return bytes(place.view[: self.count])
            if self.count < place.length:
                place.cut(self.count)
            return place
        data, self._data = self._data, b""
        return data if isinstance(data, bytes) else gather(data, self._storage)

    def drop(self) -> None:
        self._data = b""
        if self.place is not None and self._storage is not None:
            self.place, self._view = None, _NOWHERE
            self._storage.arrived(self)

    def give_up_place(self) -> None:
        """Move the body out of the arena: at once if little of it has come, else from the end of the received part."""
        place = self.place
        if isinstance(place, Lease):
            place.cut(max(1, self.count))
            self._set_place(place)
            if self.count <= CHEAP:
                self._leave_arena()

    def _set_place(self, place: Lease | Unshared) -> None:
        self.place, self._view = place, place.view

    def _leave_arena(self) -> None:
        self._room = self._most
        self._set_place(Unshared(self.length if self.length >= 0 else self._most, self._view[: self.count]))

    def _make_room(self, size: int, storage: Storage) -> None:
        """Take a place for a body in chunks with `size` bytes or more: for its first part, then for the longest body.

        So none is copied at its end. A place for the longest body at once would let sixteen short ones fill the arena.
        """
        self._room = min(FIRST, self._most) if size <= FIRST else self._most
        taken = storage.take(self._room, self)
        if taken is not None:
            taken.view[: self.count] = self._data if self.place is None else self._view[: self.count]
            self._data = b""
            self._set_place(taken)
