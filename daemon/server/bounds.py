"""The memory that all connections share: the arena, and the budgets of bodies and answers.

The budgets apply to TCP only, so that the control socket stays reachable under overload.
"""

from collections.abc import Callable
from functools import partial

from tsctl.daemon.core.arena import Arena, Take, open_arena
from tsctl.daemon.core.clock import Clock
from tsctl.daemon.events.recurring import Recurring
from tsctl.daemon.http.bounds.receiving import ReceiveBudget
from tsctl.daemon.http.bounds.sending import SendBudget
from tsctl.daemon.http.bounds.trimming import Trimming


class Bounds:
    """The arena and the budgets of one daemon.

    Args:
        receiving, sending: bytes at once.
        opened: returns a new arena; None where the system has no such memory.

    Attributes:
        arena: None where the system has no such memory.
        receiving: the budget for bodies that arrive.
    """

    def __init__(
        self,
        receiving: int,
        sending: int,
        clock: Clock,
        recurring: Recurring,
        opened: Callable[[], Arena | None] = open_arena,
    ) -> None:
        self.arena = opened()
        if self.arena is not None:
            self.arena.soon = clock.soon
        self._trimming = Trimming(clock)
        self.receiving = ReceiveBudget(
            receiving, partial(recurring.note, "limit", reason="receiving"), self._trimming.note
        )
        self._sending = sending
        self._note_unread = partial(recurring.note, "limit", reason="sending")

    @property
    def take(self) -> Take | None:
        """Return what returns a place in the arena; None without an arena."""
        return None if self.arena is None else self.arena.take

    def send_budget(self) -> SendBudget:
        """Return a new budget for answers that their clients have not taken."""
        return SendBudget(self._sending, self._note_unread, self._trimming.note)
