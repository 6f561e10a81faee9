"""The identity of a connection's peer."""

import asyncio
import socket
import struct


def peer_of(transport: asyncio.BaseTransport) -> tuple[str, int | None]:
    """Return the peer's name for the access log, and its process's user id; None as the user id of a TCP peer."""
    sock: socket.socket | None = transport.get_extra_info("socket")
    if sock is not None and sock.family == socket.AF_UNIX:
        pid, uid, _ = struct.unpack("iII", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return f"pid:{pid}", uid
    return ":".join(map(str, (transport.get_extra_info("peername") or ("unknown",))[:2])), None
