"""The times in which the daemon was down, or was being replaced: what may happen to a request depends on them."""

import contextlib
import math
import time
from collections.abc import Iterator

REPLACED = 10.0  # seconds after an upgrade in which a call over gRPC may still meet the daemon that ends


class Outages:
    """Used by all threads; an entry is added before what it tells of happens."""

    def __init__(self) -> None:
        self._kills: list[float] = []  # when the daemon served again
        self._upgrades: list[float] = []

    @contextlib.contextmanager
    def kill(self) -> Iterator[None]:
        """Note a block that kills the daemon, and starts another."""
        with _lasting(self._kills, 0.0):
            yield

    @contextlib.contextmanager
    def upgrade(self) -> Iterator[None]:
        """Note a block that replaces the daemon."""
        with _lasting(self._upgrades, REPLACED):
            yield

    def killed_since(self, moment: float) -> bool:
        """Return whether the daemon was down after a moment of the past."""
        return any(ended > moment for ended in self._kills)

    def wait(self) -> None:
        """Wait until the daemon is there."""
        while self._kills and self._kills[-1] == math.inf:
            time.sleep(0.02)

    def replaced_since(self, moment: float) -> bool:
        """Return whether the daemon was being replaced after a moment of the past."""
        return any(ended > moment for ended in self._upgrades)


@contextlib.contextmanager
def _lasting(ends: list[float], longer: float) -> Iterator[None]:
    ends.append(math.inf)
    try:
        yield
    finally:
        ends[-1] = time.monotonic() + longer
