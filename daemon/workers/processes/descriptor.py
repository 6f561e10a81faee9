"""Hand descriptors to the event loop so that each is closed exactly once.

uvloop closes the number that a Python object has, and then the object, counting on EBADF. But a thread may have got
that number in between, or, if the transport was closed before knowing the object, any code until the garbage is
collected: the second close may then hit a client's connection, and the next one to get its number is sent the
answer. So the objects that the loop gets here have nothing to close.
"""

import asyncio
import os
import socket
from collections.abc import Callable


async def read_pipe(loop: asyncio.AbstractEventLoop, protocol: Callable[[], asyncio.Protocol], descriptor: int) -> None:
    """Read a pipe, which uvloop closes at its end. (asyncio's own loop would leave that to the object.)"""
    await loop.connect_read_pipe(protocol, os.fdopen(descriptor, "rb", 0, closefd=False))


async def connect(
    loop: asyncio.AbstractEventLoop, protocol: Callable[[], asyncio.Protocol], sock: socket.socket
) -> None:
    """Talk over a connected Unix socket, which the loop closes."""
    transport, _ = await loop.create_unix_connection(protocol, sock=sock)
    if transport.is_closing():  # and perhaps closed: then uvloop did not know the object yet
        sock.detach()
