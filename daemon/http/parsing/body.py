"""The body of the request that is being received: in memory, or a large one where it stays, in the arena."""

from typing import Final

from tsctl.daemon.core.arena import SHARED_FROM, Lease, Payload, Storage, Unshared, gather

_NOWHERE: Final = memoryview(b"")
CHEAP = 64 * 1024  # bytes of a body that are copied to free arena memory: 5 µs
FIRST = 4 * 1024**2  # bytes of a body in chunks that are copied when it is longer: 3 ms


class Body:
    """The received part of a body. One object serves all requests of a connection.

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

    def begin(self) -> None:
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

    def add(self, data: bytes) -> None:
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

    def take(self) -> Payload:
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
        """Keep nothing of the body."""
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
