"""Descriptors handed to uvloop are closed once: later, the number may be a client's connection."""

import asyncio
import fcntl
import gc
import os
import socket

import pytest
import uvloop

from tsctl.daemon.workers.processes.output import connect, read_pipe


class Protocol(asyncio.Protocol):
    """Closes its transport at once if it is `hasty`."""

    def __init__(self, hasty: bool) -> None:
        self._hasty = hasty
        self.over = asyncio.get_running_loop().create_future()
        self.transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        if self._hasty:
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self.over.set_result(None)


def in_use(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def out_of_reach(descriptor: int) -> int:
    """Move a descriptor to a number that no thread of the test run is given meanwhile: the lowest free one is given."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 500)
    os.close(descriptor)
    return moved


async def use(kind: str, descriptor: int, hasty: bool) -> None:
    """Take a descriptor over, and close it."""
    loop, protocol = asyncio.get_running_loop(), Protocol(hasty)
    if kind == "pipe":
        await read_pipe(loop, lambda: protocol, descriptor)
    else:
        await connect(loop, lambda: protocol, socket.socket(fileno=descriptor))
    if protocol.transport is not None:
        protocol.transport.close()
    await protocol.over
    await asyncio.sleep(0)  # the loop closes it after it has told


@pytest.mark.parametrize("hasty", [False, True])
@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_a_number_that_the_loop_has_closed_belongs_to_who_gets_it_next(kind: str, hasty: bool) -> None:
    async def scenario() -> None:
        if kind == "pipe":
            descriptor, other = os.pipe()
        else:
            descriptor, other = (each.detach() for each in socket.socketpair())
        descriptor = out_of_reach(descriptor)
        await use(kind, descriptor, hasty)
        assert not in_use(descriptor)
        os.dup2(other, descriptor)  # somebody else gets the number
        gc.collect()
        assert in_use(descriptor)
        os.close(descriptor)
        os.close(other)

    uvloop.run(scenario())


def test_a_pipes_object_has_nothing_to_close() -> None:
    """A thread may get the number between the loop's two closings; nothing can be done in between but by a thread."""

    async def scenario() -> None:
        reading, writing = os.pipe()
        protocol = Protocol(hasty=False)
        await read_pipe(asyncio.get_running_loop(), lambda: protocol, reading)
        assert protocol.transport is not None
        assert protocol.transport.get_extra_info("pipe").closefd is False
        os.close(writing)
        await protocol.over

    uvloop.run(scenario())
