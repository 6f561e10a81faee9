"""One request before the run: checks that the model answers, and absorbs the cost of the first request."""

import asyncio
import time
from dataclasses import dataclass

from tsctl.loadgen.connection import LoadConnection
from tsctl.loadgen.order import PreparedOrder


class NoResponse(Exception):
    """There was no response."""


@dataclass(frozen=True, slots=True)
class FirstResponse:
    """The first response; `seconds` from the connection's start."""

    status: int
    body: bytes
    seconds: float


class _Once:
    """The client of one connection, for one request."""

    def __init__(self, answer: "asyncio.Future[int]") -> None:
        self._answer = answer

    def free(self, connection: LoadConnection) -> None:
        if not self._answer.done():
            connection.send(time.monotonic())

    def answered(self, connection: LoadConnection, status: int, length: int) -> None:  # noqa: ARG002
        self._answer.set_result(status)

    def lost(self, connection: LoadConnection, owing: bool) -> None:  # noqa: ARG002
        if not self._answer.done():
            self._answer.set_exception(NoResponse("the connection was closed before the first answer"))


async def ask_once(sending: PreparedOrder, loop: asyncio.AbstractEventLoop) -> FirstResponse:
    """Send the request on a separate connection.

    Raises:
        NoResponse: the request could not be sent, or was not answered in time.
    """
    answer: asyncio.Future[int] = loop.create_future()
    connection = LoadConnection(_Once(answer), sending.request, keep=True)
    began = time.monotonic()
    try:
        if sending.order.unix:
            await loop.create_unix_connection(lambda: connection, **sending.connect_options)
        else:
            await loop.create_connection(lambda: connection, **sending.connect_options)
    except OSError as error:
        raise NoResponse(f"cannot connect: {error.strerror or error}") from None
    try:
        status = await asyncio.wait_for(answer, sending.order.timeout)
    except TimeoutError:
        raise NoResponse(f"the first request was not answered within {sending.order.timeout:g} s") from None
    finally:
        connection.abort()
    return FirstResponse(status, connection.body, time.monotonic() - began)
