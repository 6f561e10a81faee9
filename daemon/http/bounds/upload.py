"""All that a connection holds for the request that it is receiving; released together, however the request ends."""

from collections.abc import Callable

from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.http.bounds.receiving import ReceiveBudget, Waiting
from tsctl.daemon.http.deadline_header import BodyDeadline


class Upload:
    """The bounds of one request's body; made when the connection begins to wait for more of it.

    Args:
        receiving: the budget that its bytes count in.
        owner: its connection, which goes on reading when there is room again.

    Attributes:
        counted: bytes of the body that count in `receiving`.
        waits: for room; nothing is read meanwhile.
        continue_owed: the client waits for `100 Continue`, which has not been sent yet.
    """

    def __init__(self, receiving: ReceiveBudget, owner: Waiting, clock: Clock) -> None:
        self.counted = 0
        self.waits = False
        self.continue_owed = False
        self._receiving = receiving
        self._owner = owner
        self._clock = clock
        self._deadline: BodyDeadline | None = None

    def count(self, received: int) -> bool:
        """Count all received bytes of the body; return False if it has to wait for room."""
        more = received - self.counted
        if more <= 0:  # granted before they came
            return not self.waits
        self.counted = received
        if not self._receiving.count_bytes(more):
            self.waits = True
            self._receiving.wait(self._owner)
        return not self.waits

    def go_on(self, granted: int) -> None:
        """Note that there is room, and that so many further bytes are already counted."""
        self.counted += granted
        self.waits = False

    def limit(self, budget: str, began: float, refuse: Callable[[DaemonError], None]) -> None:
        """Call `refuse` when the request's deadline passes; at once, if it has passed.

        Args:
            budget: as in the request's header.
            began: when its head was complete, in seconds on the clock.
        """
        if self._deadline is None:
            self._deadline = BodyDeadline(self._clock, budget, began)
            self._deadline.start(refuse)

    def release(self) -> None:
        """Release all of this: the request is complete, or no more of it is read."""
        if self.counted:
            self._receiving.free(self.counted, self._owner)
        if self._deadline is not None:
            self._deadline.stop()
