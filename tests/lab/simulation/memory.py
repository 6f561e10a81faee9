"""The arena of a run: small, so that freed memory is reused at once, and overwritten when freed.

Each body contains its request's name, so that a reader knows whose body it is.
"""

import random
from typing import TYPE_CHECKING

from tsctl.daemon.core.arena import SHARED_FROM, Arena, Lease
from tsctl.handlers import wire

if TYPE_CHECKING:
    from tests.lab.simulation.process import Process
    from tests.lab.simulation.world import World

SIZE = 16 * SHARED_FROM
_FREED = b"\xdd"


class Memory(Arena):
    """The memory that receives a run's bodies, and from which its workers read."""

    def store(self, name: str, length: int) -> Lease | None:
        """Return the body of a request in newly allocated memory; None if there is no room."""
        stored = self.take(length)
        if stored is not None:
            stored.view[:] = body_of(name, length)
        return stored

    def free(self, offset: int, length: int, *, written: bool = True) -> None:
        self.view[offset : offset + length] = _FREED * length
        super().free(offset, length, written=written)


def body_of(name: str, length: int) -> bytes:
    """Return the body of the request of this name."""
    word = f"{name} ".encode()
    return (word * (length // len(word) + 1))[:length]


class Reader:
    """The memory one worker process may read: bodies of batches that are not answered yet, and those that it keeps."""

    def __init__(self, process: "Process", world: "World") -> None:
        self._process = process
        self._world = world
        self._places: dict[int, list[tuple[str, int, int]]] = {}
        self._kept: dict[int, tuple[str, int, int]] = {}  # by offset

    @property
    def kept(self) -> int:
        """Bytes of batches that have ended, and are still used."""
        return sum(length for _, _, length in self._kept.values())

    def sent(self, batch: wire.Predict) -> None:
        """Record the bodies of a received batch."""
        if batch.stored:
            self._places[batch.batch] = [(batch.rows[each.row].id, each.offset, each.length) for each in batch.stored]

    def read(self, batch: wire.Predict) -> None:
        """Read the bodies of a batch, as a handler does at its start, and again for each row that runs alone."""
        for place in self._places.get(batch.batch, ()):
            self._check(*place)

    def answered(self, batch: wire.Predict) -> None:
        """Read the bodies of a batch for the last time."""
        self.read(batch)
        self._places.pop(batch.batch, None)

    def answered_and_kept(self, batch: wire.Predict, chance: random.Random) -> list[int]:
        """Read the bodies of a batch, and go on using some of all that were ever received; return their offsets."""
        self.read(batch)
        for place in (*self._places.pop(batch.batch, ()), *self._kept.values()):
            self._check(*place)
            if chance.random() < 0.5:
                self._kept[place[1]] = place
            else:
                self._kept.pop(place[1], None)
        return list(self._kept)

    def ended(self) -> None:
        """Read all remaining bodies: the process exists until the daemon learns of its end."""
        for place in (*(place for places in self._places.values() for place in places), *self._kept.values()):
            self._check(*place)
        self._places.clear()
        self._kept.clear()

    def _check(self, name: str, offset: int, length: int) -> None:
        found = bytes(self._world.memory.view[offset : offset + length])
        if found != body_of(name, length):
            self._world.broken("a worker reads what its request was sent with", worker=self._process, request=name,
                               found=found[:40])  # fmt: skip
