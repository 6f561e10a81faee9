"""The arena of a run: small, so that a place is used again at once, and overwritten as soon as it is free.

Each body in it is made of its request's name, so that whoever reads it knows whose it is.
"""

from typing import TYPE_CHECKING

from daemon.arena import SHARED_FROM, Place, Places, Stored
from handlers import wire

if TYPE_CHECKING:
    from daemon.simulate.faults.process import Process
    from daemon.simulate.faults.world import World

SIZE = 16 * SHARED_FROM
_FREED = b"\xdd"


class Memory:
    """What bodies of a run are received into, and what its workers read from."""

    def __init__(self) -> None:
        self._places = Places(SIZE, self._overwrite)
        self.view = memoryview(bytearray(SIZE))

    def __repr__(self) -> str:
        return f"<Memory {self._places!r}>"

    @property
    def used(self) -> int:
        return self._places.used

    def store(self, name: str, length: int) -> Stored | None:
        """Return the body of a request, in a place of its own; None if there is no room."""
        offset = self._places.take(length)
        if offset is None:
            return None
        stored = Stored(Place(self, offset, length), offset, length)
        stored.view[:] = body_of(name, length)
        return stored

    def free(self, offset: int, length: int) -> None:
        self._places.free(offset, length)

    def _overwrite(self, offset: int, length: int) -> None:
        self.view[offset : offset + length] = _FREED * length


def body_of(name: str, length: int) -> bytes:
    """Return the body that the request of this name was sent with."""
    word = f"{name} ".encode()
    return (word * (length // len(word) + 1))[:length]


class Reader:
    """What one worker process may read: the places of the batches that it was sent and has not answered."""

    def __init__(self, process: "Process", world: "World") -> None:
        self._process = process
        self._world = world
        self._places: dict[int, list[tuple[str, int, int]]] = {}

    def sent(self, batch: wire.Predict) -> None:
        """Note the places of a batch that has arrived."""
        if batch.stored:
            self._places[batch.batch] = [(batch.rows[each.row].id, each.offset, each.length) for each in batch.stored]

    def read(self, batch: wire.Predict) -> None:
        """Read the bodies of a batch, as a handler does when it begins, and again for each row that runs alone."""
        for place in self._places.get(batch.batch, ()):
            self._check(*place)

    def answered(self, batch: wire.Predict) -> None:
        """Read them for the last time."""
        self.read(batch)
        self._places.pop(batch.batch, None)

    def ended(self) -> None:
        """Read all that is left: the process is there until the daemon is told that it has ended."""
        for places in self._places.values():
            for place in places:
                self._check(*place)
        self._places.clear()

    def _check(self, name: str, offset: int, length: int) -> None:
        found = bytes(self._world.memory.view[offset : offset + length])
        if found != body_of(name, length):
            self._world.broken("a worker reads what its request was sent with", worker=self._process, request=name,
                               found=found[:40])  # fmt: skip
