"""The body of the request that is being received: in memory, or a large one where it stays, in the arena."""

from tsctl.daemon.core.arena import SHARED_FROM, Lease, Payload, Storage, Unshared, gather

CHEAP = 64 * 1024  # bytes of a body that are copied to free arena memory: 5 µs


class Body:
    """The received part of a body. One object serves all requests of a connection.

    Args:
        storage: where large bodies are received; None for ordinary memory.

    Attributes:
        length: of the body, as announced; -1 if it comes in chunks, or its head is not complete.
        count: received bytes.
        began: when its head was complete, in seconds on the daemon's clock.
        place: where a large body of known length is received; None for another.
    """

    def __init__(self, storage: Storage | None) -> None:
        self.length = -1
        self.count = 0
        self.began = 0.0
        self.place: Lease | Unshared | None = None
        self._storage = storage
        self._data: bytes | bytearray = b""

    def begin(self) -> None:
        """Note that another request has begun, whose head is not complete."""
        self.length = -1
        self.count = 0
        self._data = b""

    def take_place(self, length: int) -> bool:
        """Take a place for a body of this length; return whether it is large and there is one."""
        if length < SHARED_FROM or self._storage is None:
            return False
        self.place = self._storage.take(length, self)
        return self.place is not None

    def space(self) -> memoryview:
        """Return where the rest of a body with a place belongs, and no other bytes."""
        place = self.place
        assert place is not None
        space = place.view[self.count :]
        if not space:  # the rest of its place was given up
            self.place = Unshared(self.length, place.view)
            space = self.place.view[self.count :]
        return space

    def add(self, data: bytes) -> None:
        """Add received bytes: to its place, or to those that came before."""
        if self.place is not None:
            self.space()[: len(data)] = data
        elif not self._data:
            self._data = data  # most come in one piece
        else:
            if isinstance(self._data, bytes):
                self._data = bytearray(self._data)
            self._data += data  # not a list: chunks of two bytes would cost twenty times their size
        self.count += len(data)

    def take(self) -> Payload:
        """Return the complete body, and keep nothing of it."""
        place = self.place
        if place is not None:
            self.drop()
            return place if isinstance(place, Lease) else bytes(place)
        data, self._data = self._data, b""
        return data if isinstance(data, bytes) else gather(data, self._storage)

    def drop(self) -> None:
        """Keep nothing of the body."""
        self._data = b""
        if self.place is not None and self._storage is not None:
            self.place = None
            self._storage.arrived(self)

    def give_up_place(self) -> None:
        """Move the body out of the arena: at once if little of it has come, else from the end of the received part."""
        place = self.place
        if isinstance(place, Lease):
            place.cut(max(1, self.count))
            if self.count <= CHEAP:
                self.place = Unshared(self.length, place.view[: self.count])
