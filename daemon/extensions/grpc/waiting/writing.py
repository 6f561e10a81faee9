"""Answers that gRPC is writing: bounded together, by a budget like that of HTTP's answers (http/bounds/sending.py).

An answer counts until gRPC has written it. grpc.aio cannot close a connection whose client does not read, so the
answers of such clients count until they read or leave: in one budget for both they would take HTTP's room away.
"""

import asyncio
from collections.abc import Callable
from functools import partial

from tsctl.daemon.core.clock import Clock
from tsctl.daemon.http.bounds.sending import SendBudget

COUNTED = 64 * 1024  # bytes; smaller messages do not count: gRPC's own buffers hold as much for each call


class Peer:
    """A connection with answers that are being written."""

    def __init__(self) -> None:
        self.held = 0

    def has_taken(self) -> bool:
        return True  # never to be closed for others, because it cannot be

    def give_up(self) -> None:
        raise NotImplementedError


class Writing:
    """The large answers that are being written, by connection."""

    def __init__(self, budget: SendBudget, clock: Clock) -> None:
        self._budget = budget
        self._clock = clock
        self._peers: dict[str, Peer] = {}

    def begin_answer(self, peer: str, size: int) -> Callable[[], None] | None:
        """Count an answer, and return the call that ends this when it is written; None for a small one.

        Raises:
            NoRoomToSend: too much is being written.
        """
        if size < COUNTED:
            return None
        who = self._peers.get(peer) or Peer()
        if not self._budget.hold(who, size, self._clock.now()):
            raise self._budget.refuse()
        self._peers[peer] = who
        return partial(self._end, peer, who, size)

    def until_written(self, peer: str, size: int) -> None:
        """Count an answer that the running task returns to gRPC, whose task ends when the answer is written.

        Raises:
            NoRoomToSend: too much is being written.
        """
        end = self.begin_answer(peer, size)
        task = asyncio.current_task()
        if end is not None and task is not None:
            task.add_done_callback(lambda ended: end())

    def _end(self, peer: str, who: Peer, size: int) -> None:
        self._budget.taken(who, size, self._clock.now())
        if not who.held:
            self._peers.pop(peer, None)
