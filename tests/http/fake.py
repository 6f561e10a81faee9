"""A transport in memory: records what a connection writes; the peer's actions are method calls."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

HIGH, LOW = 64 * 1024, 16 * 1024  # bytes unsent above which writing pauses, and below which writing resumes


class FakeTransport(asyncio.Transport):
    """The transport of one protocol, without a socket and without a loop.

    Args:
        protocol: its `connection_made` is called at once.
        soon: makes a call when the present one has returned, as `FakeClock.soon` does: a transport
            does not call back into a protocol that is calling it.
        extra: the values that `get_extra_info` returns.

    Attributes:
        written: all bytes written; a test may clear them.
        eof: our side was shut down.
        closed: nothing goes out any more, whether by `close` or by `abort`.
        aborted: the transport was closed by `abort`.
        reading: arriving bytes are delivered.
        unsent: bytes that the peer has not taken yet, as set by a test.
        window: bytes that the peer takes from now on (see `take`); None for any number.
        half_closes: our side alone can be shut down, which TLS cannot.
    """

    def __init__(self, protocol: Any, soon: Callable[[Callable[[], None]], None], **extra: Any) -> None:
        super().__init__(extra)
        self.written = bytearray()
        self.eof = False
        self.closed = False
        self.aborted = False
        self.reading = True
        self.unsent = 0
        self.window: int | None = None
        self.half_closes = True
        self._protocol = protocol
        self._soon = soon
        self._waiting = bytearray()
        self._paused = False
        protocol.connection_made(self)

    def __repr__(self) -> str:
        flags = [word for word in ("eof", "aborted", "closed") if getattr(self, word)]
        return f"<FakeTransport {len(self.written)} bytes {' '.join(flags) or 'open'}>"

    # Actions of the peer.

    def receive(self, data: bytes) -> None:
        """Deliver bytes from the peer; while reading is paused they wait."""
        if not self.reading:
            self._waiting += data
        else:
            while data and not self.closed:
                data = self._deliver(data)

    def _deliver(self, data: bytes) -> bytes:
        """Deliver as many bytes as the protocol's buffer holds; return the rest."""
        if not self.reading:
            self._waiting += data
            return b""
        if not hasattr(self._protocol, "get_buffer"):  # uvloop, too, asks for no base class
            self._protocol.data_received(data)
            return b""
        buffer = memoryview(self._protocol.get_buffer(-1))
        count = min(len(buffer), len(data))
        buffer[:count] = data[:count]
        self._protocol.buffer_updated(count)
        return data[count:]

    def receive_eof(self) -> None:
        """Close the peer's side."""
        if not self.closed and not self._protocol.eof_received():
            self.close()

    def lose(self) -> None:
        """Break the connection."""
        self._end()

    def stop_taking(self) -> None:
        """Let the peer stop reading: writing pauses."""
        self._protocol.pause_writing()

    def take_again(self) -> None:
        self._protocol.resume_writing()

    def take(self, count: int) -> None:
        """Let the peer, which has a window, read `count` more bytes."""
        assert self.window is not None
        read = min(count, self.unsent)
        self.unsent -= read
        self.window += count - read
        if self._paused and self.unsent <= LOW:
            self._paused = False
            self._protocol.resume_writing()

    # Actions of the protocol.

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.eof:
            raise RuntimeError("write after write_eof")
        if self.closed:
            return
        self.written += data
        if self.window is not None:
            read = min(self.window, len(data))
            self.window -= read
            self.unsent += len(data) - read
            if self.unsent > HIGH and not self._paused:
                self._paused = True
                self._protocol.pause_writing()

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        for data in list_of_data:
            self.write(data)

    def can_write_eof(self) -> bool:
        return self.half_closes

    def write_eof(self) -> None:
        if not self.half_closes:
            raise NotImplementedError
        self.eof = True

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self._end()

    def abort(self) -> None:
        self.aborted = self.aborted or not self.closed
        self._end()

    def is_reading(self) -> bool:
        return self.reading

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True
        if self._waiting:
            data, self._waiting = bytes(self._waiting), bytearray()
            self._soon(lambda: self.receive(data))

    def _end(self) -> None:
        if not self.closed:
            self.closed = True
            self._soon(lambda: self._protocol.connection_lost(None))
