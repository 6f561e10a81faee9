"""The stream of the blocking client: a socket, whose calls get the time that is left.

A socket's own timeout bounds each system call, so a peer that sends a byte now and then would be waited for without
end. Not `http.client`: it takes headers that break off for complete ones.
"""

import socket
from typing import TYPE_CHECKING

from tsctl.python.transport.address import DaemonAddress
from tsctl.python.transport.link import PIECE, readable, tls_context

if TYPE_CHECKING:
    import ssl


class BlockingStream:
    """A socket as a `Stream`."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    @property
    def open(self) -> bool:
        return self._socket.fileno() >= 0

    @property
    def usable(self) -> bool:
        return not readable(self._socket.fileno())

    def close(self) -> None:
        self._socket.close()

    async def read(self, timeout: float | None) -> bytes:
        self._socket.settimeout(timeout)
        return self._socket.recv(PIECE)

    async def write(self, head: bytes, body: bytes, timeout: float | None) -> None:
        self._socket.settimeout(timeout)
        for data in (head + body,) if len(body) < PIECE else (head, body):
            self._socket.sendall(data)


async def connect(address: DaemonAddress, tls: "ssl.SSLContext | None", timeout: float | None) -> BlockingStream:
    """Connect to a daemon; raise OSError if that fails."""
    if address.socket is not None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    else:
        connection = socket.create_connection((address.host, address.port), timeout)
    try:
        if address.socket is not None:
            connection.settimeout(timeout)
            connection.connect(str(address.socket))
        else:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if address.tls:
                connection = tls_context(tls).wrap_socket(connection, server_hostname=address.host)
    except BaseException:
        connection.close()
        raise
    return BlockingStream(connection)
