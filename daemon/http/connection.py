"""HTTP/1.1 on one connection.

A connection reads requests and owes an answer for each. Answers leave in the order of their
requests, whatever the order in which they are ready. Wrong or slow peers are handled so:

    headers or body too slow            408, close; a body that is slower than its budget: 504
    head too long, body too long        431, 413, without reading the rest
    not authorised                      the error that `admit` raises, without reading the body
    no room for its body                503 after a second, without reading the rest (bounds/receiving.py)
    not HTTP                            400
    sends many requests ahead           32 may be unanswered at a time, further ones wait unparsed (limits.py)
    does not read its answers           reading stops, waiting bytes are bounded (bounds/sending.py), closed after a
    timeout closes its side (FIN)               queued work is cancelled; running work is still answered
    closes its side of TLS              the client has left: TLS has no half-closed connections

states/connection.py draws its life:

    READING ──ended──▶ ANSWERING ──answered──▶ LINGERING
       │                   │                       │
       └─────finished──────┴───▶ LEAVING           │
                                    │              │
    any state ──────────lost────────┴──────────────┴──▶ CLOSED

In LINGERING, after an answer that may leave input unread, the connection has shut down its own side and discards
further input: closing at once would reset the connection, and an uploader would never see the answer (RFC 9112,
section 9.6). Discarding lasts as long as bytes arrive every 2 s, at most 30 s, and for 128
uploaders at a time; one more ends it for the first of them (listener.py).
"""

import asyncio
import contextlib
import socket
import struct
from typing import Final, cast

from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.core.job import Caller
from tsctl.daemon.http.bounds.sending import PIECE
from tsctl.daemon.http.bounds.upload import Upload
from tsctl.daemon.http.exchange import Exchange, Outgoing
from tsctl.daemon.http.forwarded_for import TrustedProxies
from tsctl.daemon.http.host import ListenerView
from tsctl.daemon.http.limits import replaced, slow_body, slow_head
from tsctl.daemon.http.messages import Request, error_response
from tsctl.daemon.http.parsing.parser import Receiver
from tsctl.daemon.http.states.connection import (
    ANSWERING,
    CLOSED,
    LINGERING,
    READING,
    ConnectionEvent,
    ConnectionPhase,
    ConnectionState,
    Lingering,
    advance,
)
from tsctl.daemon.http.states.receiver import HEAD, STORED


def peer_of(transport: asyncio.BaseTransport) -> tuple[str, int | None]:
    """Return the peer's name for the access log, and its process's user id; None as the user id of a TCP peer."""
    sock: socket.socket | None = transport.get_extra_info("socket")
    if sock is not None and sock.family == socket.AF_UNIX:
        pid, uid, _ = struct.unpack("iII", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return f"pid:{pid}", uid
    return ":".join(map(str, (transport.get_extra_info("peername") or ("unknown",))[:2])), None


# Bytes read at once. At most so much of a large body passes through the parser and is copied.
READ_SIZE = 32 * 1024
_ARRIVING: Final = memoryview(bytearray(READ_SIZE))
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Connection:
    """One client's connection.

    The transport asks for a buffer, receives into it, and reports at once: so all input but large bodies can share one
    buffer for all connections.

    In its methods an asyncio.BufferedProtocol, for which the event loop looks; not a subclass, because the compiler
    makes C structures of classes with compiled bases alone.
    """

    def __init__(self, host: ListenerView) -> None:
        self.caller = Caller()
        self._state: int = READING  # a ConnectionState
        self._host = host
        self._receiver = Receiver(
            host.limits, host.clock.now, self._requested, self._expected, host.storage, host.admit
        )
        self._pipeline = self._receiver.room = host.limits.pipeline
        self._upload: Upload | None = None  # of the request being received, if its body is awaited
        self._lingering: Lingering | None = None
        self.headers = host.headers
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._out = Outgoing(self, host.sending, host.clock)
        self._exchanges = self._out.exchanges
        self._peer = ""
        self._proxies: TrustedProxies | None = None  # where the peer is one of them
        self._in_place = False  # the next bytes belong to a body, and are received in their final place
        self._reading_paused = False
        self._parses_soon = False  # a call of `_go_on_parsing` is due

    def __repr__(self) -> str:
        return f"<Connection {self._peer} {ConnectionState(self._state).name} owes {len(self._exchanges)}>"

    # Callbacks of the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = self._out.transport = cast(asyncio.Transport, transport)
        self._host.arrived(self)
        self._peer, uid = peer_of(transport)
        if uid is not None and not self._host.peer_allowed(uid):
            self._transport.abort()
            return
        proxies = self._host.limits.proxies
        if uid is None and proxies is not None and proxies.trust(self._peer):
            self._proxies = proxies
        self._host.enter(self, ConnectionPhase.IDLE)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - we know better
        space = self._receiver.space() if self._receiver.state == STORED else None
        self._in_place = space is not None
        if space is None:
            return _ARRIVING
        at_once = self._host.receiving.at_once
        return space if len(space) <= at_once else space[: int(at_once)]

    def buffer_updated(self, nbytes: int) -> None:
        if self._state != READING:
            self._discard()
            return
        try:
            if self._in_place:
                self._receiver.filled(nbytes)
            else:
                self._receiver.feed(_ARRIVING[:nbytes])
        except DaemonError as error:
            self._end_with(error)
            return
        if self._receiver.begun or self._reading_paused or not 0 < len(self._exchanges) < self._pipeline:
            self._watch()  # otherwise the connection owes an answer, and `_requested` has set the state

    def eof_received(self) -> bool:
        if self._state == READING or self._state == ANSWERING:
            self._leave_off(ConnectionEvent.FINISHED)
        if not self._transport.can_write_eof():
            self._close()  # TLS has no half-closed connection: a client that closes its side has left
            return False
        kept = 0
        for exchange in self._exchanges:
            if not (exchange.done or exchange.on_leave is None or exchange.on_leave(False)):
                break  # cancelled: a gap that no later answer may fill
            kept += 1
        self._out.cut(kept)
        if not self._exchanges:
            self._close()
            return False
        self._exchanges[-1].close = True
        self._watch()
        return True  # keep our side open for the answers still owed

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - lost is lost
        self._leave_off(ConnectionEvent.LOST)
        self._host.left(self)
        self._host.leave(self)
        self.caller.close()
        self._out.cut(0)

    def pause_writing(self) -> None:
        self._out.paused = True
        self.enter_stuck()
        self._update_reading()

    def resume_writing(self) -> None:
        self._out.paused = False
        if self._lingering is not None:
            self._lingering.linger(self._host.clock.now())
            self._host.enter(self, ConnectionPhase.LINGER)
            return
        self._host.leave(self)
        if self._exchanges:
            self.flush(self._exchanges[0])
        else:
            self._watch()

    # Callbacks of the receiver.

    def _requested(self, request: Request) -> None:
        self._name_client(request)
        if self._upload is not None:
            self._end_upload()
        if not self._out.paused:
            self._host.leave(self)  # the next request has a deadline of its own
        exchange = Exchange(self, request)
        self._exchanges.append(exchange)
        self._receiver.room = self._room()
        if exchange.close or self._host.stopping:
            exchange.close = True
            self._end_reading()  # input after the last request is ignored
        self._host.application(exchange)

    def _expected(self) -> None:
        self._await_body().continue_owed = True
        self._send_continue()

    # Calls from the listener.

    def expired(self, phase: ConnectionPhase, now: float) -> None:
        if phase is ConnectionPhase.HEADERS:
            self._refuse(slow_head(self._host.limits))
        elif phase in (ConnectionPhase.BODY, ConnectionPhase.BODY_RATE):
            self._check_body(now)
        elif phase is ConnectionPhase.ROOM:
            if self._waits_for_room():  # otherwise another connection without room was rejected a moment ago
                self._end_with(self._host.receiving.refuse())
        elif phase in (ConnectionPhase.IDLE, ConnectionPhase.LINGER) and self._transport.get_write_buffer_size():
            self.enter_stuck()  # the client has not received the whole answer yet; `close` would wait for it for ever
        elif phase is ConnectionPhase.IDLE:
            self._close()
        elif phase is ConnectionPhase.LINGER and self._lingering is not None and self._lingering.check(now):
            self._host.enter(self, ConnectionPhase.LINGER)
        elif phase is ConnectionPhase.STUCK and self._transport.get_write_buffer_size() < self._out.unsent:
            self.enter_stuck()  # the client reads, if slowly
        else:
            self._transport.abort()

    def stop(self, over: bool = False) -> None:
        """Close after the last answer that is owed, or now. A request that is arriving is answered, or refused."""
        if over and self._state == READING and self._receiver.begun:
            self._end_with(replaced())
        if self._state != READING or self._receiver.begun:
            return
        if self._exchanges:
            self._exchanges[-1].close = True
            self._end_reading()
        else:
            self._close()

    def unsent(self) -> int:
        """Return the bytes that the client has not taken, if nothing else is left to do; else -1."""
        ended = self._transport.is_closing() or not (self._exchanges or self._state == READING) or self._out.paused
        return self._transport.get_write_buffer_size() if ended else -1

    def abort(self) -> None:
        self._transport.abort()

    # Answers.

    def answered(self, exchange: Exchange) -> None:
        request = exchange.request
        self._host.access(request, exchange.status, self._host.clock.now() - request.received)

    def break_off(self, exchange: Exchange, error: DaemonError) -> None:
        if self._out.break_off(exchange, error):
            self.flush(exchange)
            self.answered(exchange)

    def flush(self, exchange: Exchange) -> None:
        last = self._out.write(exchange)
        self._receiver.room = self._room()
        if last:
            self._shut_down()
            return
        if self._upload is not None:
            self._send_continue()
        self._watch()

    def _name_client(self, request: Request) -> None:
        request.peer = self._peer
        if self._proxies is not None:
            request.peer = self._proxies.client_of(request.headers, self._peer)

    def _room(self) -> int:
        """Return how many requests may be read now: none while more than a piece of ready answers is unsent."""
        return self._pipeline - len(self._exchanges) if self._out.held <= PIECE else 0

    def _send_continue(self) -> None:
        """Ask for the body, once the answers before this request are out."""
        if self._upload is not None and self._upload.continue_owed and not self._exchanges:
            self._upload.continue_owed = False
            self._transport.write(CONTINUE)

    def _refuse(self, error: DaemonError) -> None:
        """Answer the request being received with an error, and stop reading."""
        self._end_reading()
        request = self._receiver.request_so_far()
        self._name_client(request)
        exchange = Exchange(self, request)
        self._exchanges.append(exchange)
        exchange.respond(error_response(error, exchange.request.target))

    def _shut_down(self) -> None:
        """Shut down our side after the last answer, and discard further input."""
        self._end_reading()
        self._out.cut(0)
        if self._state != ANSWERING or not (self._transport.can_write_eof() or self._receiver.cut_short):
            self._close()  # over TLS, the end of the answers can be signalled only by closing
            return
        with contextlib.suppress(OSError, RuntimeError):  # the client may have gone meanwhile
            self._transport.write_eof()
        self._state = advance(self._state, ConnectionEvent.ANSWERED)
        self._lingering = Lingering(self._host.clock.now())
        self._update_reading()
        self._host.enter(self, ConnectionPhase.LINGER)

    def _discard(self) -> None:
        """Ignore input; while an answer is still owed, it ends the connection whatever comes."""
        if self._lingering is not None and self._lingering.hear():
            self._host.uploads_on(self)

    def _close(self) -> None:
        if not self._transport.is_closing():  # asyncio's transport of TLS breaks when it is closed twice
            self._transport.close()

    # Deadlines and back-pressure.

    def _watch(self) -> None:
        """Enter the deadline phase that the connection's state requires."""
        if self._state == LINGERING or self._state == CLOSED or self._out.paused:
            return
        if self._reading_paused or self._receiver.room <= 0:
            if self._receiver.kept and self._receiver.room > 0 and not self._parses_soon:
                # not at once: the caller, who has just answered, may be in the middle of its own work
                self._parses_soon = True
                self._host.clock.soon(self._go_on_parsing)
            self._update_reading()
        if self._state == READING and self._receiver.begun:
            self._watch_request()
        elif self._exchanges:
            self._host.leave(self)  # the daemon owes an answer
        else:
            self._host.enter(self, ConnectionPhase.IDLE)

    def _watch_request(self) -> None:
        """Enter the deadline phase of the request that is being received, and count its body."""
        receiver = self._receiver
        received, budget = receiver.body.count, receiver.budget
        if received and not self._await_body().count(received):
            self._update_reading()
        wanted = (
            ConnectionPhase.ROOM
            if self._waits_for_room()
            else ConnectionPhase.HEADERS
            if receiver.state == HEAD
            else ConnectionPhase.BODY
        )
        phase = self._host.phase(self)
        if phase is not wanted and not (wanted is ConnectionPhase.BODY and phase is ConnectionPhase.BODY_RATE):
            self._host.enter(self, wanted)
        if budget is not None:
            self._await_body().limit(budget, receiver.body.began, self._end_with)

    def _go_on_parsing(self) -> None:
        """Parse the input that was read ahead, now that there is room."""
        self._parses_soon = False
        if self._state == READING and not self._out.paused:
            try:
                self._receiver.go_on()
            except DaemonError as error:
                self._refuse(error)
            self._watch()

    def go_on(self, granted: int) -> None:
        """Read on: there is room for the body again."""
        self._await_body().go_on(granted)
        self._update_reading()
        self._watch()

    def _await_body(self) -> Upload:
        """Return the upload of the request being received, whose body does not come in one piece with its head."""
        if self._upload is None:
            self._upload = Upload(self._host.receiving, self, self._host.clock)
        return self._upload

    def _waits_for_room(self) -> bool:
        return self._upload is not None and self._upload.waits

    def _end_upload(self) -> None:
        upload, self._upload = self._upload, None
        if upload is not None:
            upload.release()

    def _end_reading(self) -> None:
        """Read nothing more, if that was not so already."""
        if self._state == READING:
            self._leave_off(ConnectionEvent.ENDED)

    def _leave_off(self, why: ConnectionEvent) -> None:
        """Leave a state for one in which nothing is read."""
        self._state = advance(self._state, why)
        self._receiver.leave()
        self._end_upload()

    def _end_with(self, error: DaemonError) -> None:
        self._refuse(error)
        self._watch()

    def enter_stuck(self) -> None:
        self._out.unsent = self._transport.get_write_buffer_size()
        self._host.enter(self, ConnectionPhase.STUCK)

    def _check_body(self, now: float) -> None:
        error = slow_body(self._host.limits, now - self._receiver.body.began, self._receiver.body.count)
        if error is not None:
            self._refuse(error)
        else:
            self._host.enter(self, ConnectionPhase.BODY_RATE)

    def _update_reading(self) -> None:
        full = self._receiver.room <= 0 or self._receiver.kept
        pause = self._state != LINGERING and bool(self._out.paused or full or self._waits_for_room())
        if pause != self._reading_paused and self._state != CLOSED:
            self._reading_paused = pause
            if pause:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()
