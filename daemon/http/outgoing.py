"""The answers that one connection owes, and what of them waits: they leave in the order of the requests.

What the client does not read stays here, where it is counted (sending.py): the transport gets an answer piece by piece,
and nothing while it is paused. Over TLS, too: there the transport does not say what it holds.
"""

import asyncio
from collections import deque
from typing import Protocol

from daemon.clock import Clock
from daemon.errors import DaemonError
from daemon.http.exchange import Exchange, write_all
from daemon.http.sending import PIECE, NoRoomToSend, Sending


class Owner(Protocol):
    """The connection, as its outgoing side sees it."""

    def enter_stuck(self) -> None:
        """Start the time anew that a client has to read something."""


class Outgoing:
    """The outgoing side of a connection.

    Attributes:
        transport: set when the connection is made.
        exchanges: those that are not answered, or whose answers are not written yet; the oldest first.
        paused: the client does not read, and nothing is written.
        unsent: bytes in the transport when the client was last found not to read.
        held: bytes that count in `sending`.
    """

    transport: asyncio.Transport

    def __init__(self, owner: Owner, sending: Sending, clock: Clock) -> None:
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
            exchange: the one that got more to write.

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
        """End an answer that has begun. Return whether it could be replaced by the error, as none of it was written."""
        if exchange.written:
            self.transport.abort()  # whatever comes after it is lost too
            return False
        exchange.let_go()
        exchange.replace(error)
        return True

    def cut(self, kept: int) -> None:
        """Forget the exchanges after the first `kept`: their answers will not be sent."""
        while len(self.exchanges) > kept:
            exchange = self.exchanges.pop()
            exchange.done = True
            if exchange.counted:
                self._sending.drop(self, exchange.counted)
                exchange.counted = 0
            exchange.buffer = []
            exchange.let_go()

    # The budget asks.

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
        """Count what has to wait. Without room for it, put an error in its place, or cut what was begun."""
        sending, now, more = self._sending, self._clock.now(), exchange.size - exchange.counted
        if more < 0:
            sending.drop(self, -more)
        elif more and not sending.hold(self, more, now):
            sending.drop(self, exchange.counted)
            if not self.break_off(exchange, NoRoomToSend(sending.limit)):
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
