"""The answers that one connection owes, and their unwritten bytes: answers leave in the order of the requests.

Bytes that the client does not read stay here, where they are counted (bounds/sending.py): the transport gets an answer
piece
by piece, and nothing while writing is paused. The same holds over TLS, where the transport does not report its buffer.
"""

import asyncio
from collections import deque
from typing import Protocol

from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.http.bounds.sending import PIECE, SendBudget
from tsctl.daemon.http.exchange import Exchange, write_all


class OutgoingOwner(Protocol):
    """The connection, as its outgoing side sees it."""

    def enter_stuck(self) -> None:
        """Restart the timeout within which the client has to read something."""


class Outgoing:
    """The outgoing side of a connection.

    Attributes:
        transport: set when the connection is made.
        exchanges: those whose answers are not complete or not written yet; the oldest first.
        paused: the client does not read, and nothing is written.
        unsent: bytes in the transport when writing was last paused.
        held: bytes that count in `sending`.
    """

    transport: asyncio.Transport

    def __init__(self, owner: OutgoingOwner, sending: SendBudget, clock: Clock) -> None:
        self.exchanges: deque[Exchange] = deque()
        self.paused = False
        self.unsent = 0
        self.held = 0
        self._owner = owner
        self._sending = sending
        self._clock = clock

    def write(self, exchange: Exchange) -> bool:
        """Write the answers that are ready, as far as the client reads them.

        Args:
            exchange: the one whose buffer grew.

        Returns:
            Whether the last answer of the connection is out.
        """
        exchanges = self.exchanges
        if self.paused or exchange.size > PIECE or exchange is not exchanges[0]:
            self._hold(exchange)
        while exchanges and not self.paused:
            first = exchanges[0]
            if first.buffer:
                self._write(first)
                if first.buffer:
                    break
            if not first.done:
                break
            exchanges.popleft()
            if first.close:
                return True
        return False

    def break_off(self, exchange: Exchange, error: DaemonError) -> bool:
        """Abort an answer that has begun. Return whether the error replaced it, as nothing was written yet."""
        if exchange.written:
            self.transport.abort()  # the answers after this one are lost, too
            return False
        exchange.let_go()
        exchange.replace(error)
        return True

    def cut(self, kept: int) -> None:
        """Drop the exchanges after the first `kept`: their answers will not be sent."""
        while len(self.exchanges) > kept:
            exchange = self.exchanges.pop()
            exchange.done = True
            if exchange.counted:
                self._sending.drop(self, exchange.counted)
                exchange.counted = 0
            exchange.buffer = []
            exchange.let_go()

    # The interface towards the budget (bounds/sending.py).

    def has_taken(self) -> bool:
        if self.paused and self.transport.get_write_buffer_size() >= self.unsent:
            return False
        if self.paused:
            self._owner.enter_stuck()
        return True

    def give_up(self) -> None:
        self.cut(0)
        self.transport.abort()

    def _hold(self, exchange: Exchange) -> None:
        """Count the bytes that have to wait. Without room, answer with an error, or cut off one already begun."""
        sending, now, more = self._sending, self._clock.now(), exchange.size - exchange.counted
        if more < 0:
            sending.drop(self, -more)
        elif more and not sending.hold(self, more, now):
            sending.drop(self, exchange.counted)
            if not self.break_off(exchange, sending.refuse()):
                exchange.take_all()
            else:
                sending.add(self, exchange.size, now)
        exchange.counted = exchange.size

    def _write(self, exchange: Exchange) -> None:
        exchange.written = True
        if exchange.size <= PIECE:  # nearly always, without further calls
            pieces, exchange.buffer, exchange.size = exchange.buffer, [], 0
            if len(pieces) == 1:
                self.transport.write(pieces[0])
            else:
                write_all(self.transport, pieces)
        else:
            while exchange.buffer and not self.paused:
                write_all(self.transport, exchange.take(PIECE))
        if exchange.counted:
            self._sending.taken(self, exchange.counted - exchange.size, self._clock.now())
            exchange.counted = exchange.size
        if exchange.flow is not None and not exchange.buffer:
            exchange.flow.drained()
