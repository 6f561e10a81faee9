"""One end of the socketpair between the old and the new daemon: lines, in order."""

import asyncio
import contextlib
import socket

import msgspec

from tsctl.daemon.lifecycle.upgrade.messages import LONGEST, BrokenUpgradeMessage, encode

_LAST_TIME = 5.0  # seconds


class HungUp(Exception):
    """The other side has closed its end, or has ended."""


class Channel:
    """Lines to and from the other daemon; must be used on one loop.

    Args:
        sock: owned by the channel from now on.
    """

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._rest = b""
        self._speaking = asyncio.Lock()  # a long line may take several turns

    async def tell(self, word: msgspec.Struct) -> None:
        """Send a message. A short one is with the kernel when this returns.

        Raises:
            HungUp: the other side has closed its end.
        """
        try:
            async with self._speaking:
                await asyncio.get_running_loop().sock_sendall(self._socket, encode(word))
        except OSError:
            raise HungUp from None

    async def hear(self) -> bytes:
        """Receive a line. Cancelling this loses nothing.

        Raises:
            HungUp: the other side has closed its end, and all lines have been received.
            BrokenUpgradeMessage: the line exceeds `LONGEST` bytes.
        """
        while b"\n" not in self._rest:
            try:
                data = await asyncio.get_running_loop().sock_recv(self._socket, 65536)
            except (OSError, ValueError):  # reset, or closed by ourselves
                data = b""
            if not data:
                raise HungUp
            self._rest += data
            if len(self._rest) > LONGEST:
                raise BrokenUpgradeMessage("a line without an end")
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def tell_last(self, word: msgspec.Struct) -> None:
        """Send a message and close the channel; blocks, and needs no loop."""
        self._socket.settimeout(_LAST_TIME)
        with contextlib.suppress(OSError):
            self._socket.sendall(encode(word))
        self._socket.close()

    def close(self) -> None:
        self._socket.close()


def first_line(sock: socket.socket) -> bytes:
    """Read one line and nothing behind it, blocking; empty if the other side closes early or the line is too long."""
    line = bytearray()
    while not line.endswith(b"\n"):
        data = sock.recv(65536)
        if not data or len(line) > LONGEST:
            return b""
        line += data  # nothing follows the line before we answer
    return bytes(line)
