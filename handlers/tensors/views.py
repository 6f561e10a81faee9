"""Arrays of a request's memory that a handler still uses after their batch: kept, or shared by a tensor made of one.

The daemon must not give such memory to another request. Everything that uses an array's memory refers to the array, or
to one that does: so the memory is in use as long as the first array lives. (Releasing the memoryview would not tell:
NumPy makes one of its own.)
"""

import threading
import weakref
from typing import Any

from tsctl.handlers import wire

Arrays = list["weakref.ref[Any]"]


class Views:
    """The arrays of running batches, and those of finished ones that still live.

    Attributes:
        watches: there are some.
    """

    def __init__(self) -> None:
        self.watches = False
        self._running: dict[int, Arrays] = {}  # by the identity of the value, which its row refers to
        self._kept: list[tuple[int, Arrays]] = []  # and the value's offset in the arena
        self._lock = threading.Lock()  # batches may overlap

    def watch(self, value: wire.Payload, array: Any) -> None:
        """Note that an array is a view of a value."""
        with self._lock:
            self.watches = True
            self._running.setdefault(id(value), []).append(weakref.ref(array))

    def end_batch(self, batch: wire.Predict) -> list[int]:
        """Note that a batch is done; return the offsets of all values whose arrays live."""
        with self._lock:
            for each in batch.stored:
                arrays = self._running.pop(id(batch.rows[each.row].params[each.param][2]), None)
                if arrays is not None:
                    self._kept.append((each.offset, arrays))
            for row in batch.rows if self._running else ():
                for _, _, value in row.params:
                    self._running.pop(id(value), None)  # of the frame's own memory, which is no other request's
            self._kept = [(offset, arrays) for offset, arrays in self._kept if any(ref() is not None for ref in arrays)]
            self.watches = bool(self._running or self._kept)
            return [offset for offset, _ in self._kept]
