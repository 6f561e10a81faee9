"""The closed loop: a number of clients, each of which sends its next request after the last response."""

import time

from tsctl.loadgen.connection import LoadConnection
from tsctl.loadgen.loop import Loop


class ClosedLoop(Loop):
    """Keeps `connections` connections busy."""

    def _start(self) -> None:
        wanted = self._order.connections
        for _ in range(wanted if self._left is None else min(wanted, self._left)):
            self._open()

    def free(self, connection: LoadConnection) -> None:
        if self._take():
            connection.send(time.monotonic())
        elif self._idle_now():
            self._stop_sending()

    def _replace(self) -> None:
        if self._left != 0:
            self._open()
        elif self._idle_now():
            self._stop_sending()

    def _refused(self) -> None:
        if self._take():  # a request that could not even be sent
            self.tally.failed("refused")

    def _idle_now(self) -> bool:
        return self._order.requests is not None and self.tally.ended >= self._order.requests
