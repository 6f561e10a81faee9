"""The stream of the client for asyncio: its pair of streams."""

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from tsctl.python.transport.address import DaemonAddress
from tsctl.python.transport.link import PIECE, readable, tls_context

if TYPE_CHECKING:
    import ssl


class WaitingStream:
    """A reader and a writer as a `Stream`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @property
    def open(self) -> bool:
        return not self._writer.is_closing()

    @property
    def usable(self) -> bool:
        if self._reader.at_eof() or self._writer.is_closing():
            return False
        # The loop learns of the end only in its next turn.
        return not readable(self._writer.get_extra_info("socket").fileno())

    def close(self) -> None:
        with contextlib.suppress(RuntimeError):  # its event loop is closed
            self._writer.transport.abort()

    async def read(self, timeout: float | None) -> bytes:
        async with asyncio.timeout(timeout):
            return await self._reader.read(PIECE)

    async def write(self, head: bytes, body: bytes, timeout: float | None) -> None:
        async with asyncio.timeout(timeout):
            self._writer.writelines((head, body))
            await self._writer.drain()


async def connect(address: DaemonAddress, tls: "ssl.SSLContext | None", timeout: float | None) -> WaitingStream:
    """Connect to a daemon; raise OSError if that fails."""
    async with asyncio.timeout(timeout):
        if address.socket is not None:
            return WaitingStream(*await asyncio.open_unix_connection(str(address.socket)))
        secure: dict[str, Any] = {"ssl": tls_context(tls), "server_hostname": address.host} if address.tls else {}
        return WaitingStream(*await asyncio.open_connection(address.host, address.port, **secure))
