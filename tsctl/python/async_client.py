"""The client for asyncio. The methods, their arguments and their errors are those of `Client` (client.py)."""

import asyncio
import os
import random
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Self

from tsctl.python import calls
from tsctl.python.answers import ReceivedAnswer, TextPieces, check
from tsctl.python.calls import Call, CallTime, time_of
from tsctl.python.client import MOST_IDLE
from tsctl.python.transport.address import read_address
from tsctl.python.transport.async_link import AsyncLink, connect

if TYPE_CHECKING:
    import ssl


class AsyncClient:
    """A daemon, for programs on asyncio; arguments, errors and repetitions as of `Client`.

    Any number of tasks of one event loop may use a client; each call has a connection of its own while it lasts. A call
    that is cancelled closes its connection, so that the daemon drops the request if no worker has it.
    """

    def __init__(
        self,
        address: str | os.PathLike[str] | None = None,
        *,
        token: str | None = None,
        deadline: float | None = None,
        tls: "ssl.SSLContext | None" = None,
    ) -> None:
        self.address = read_address(address)
        self._headers = calls.token_headers(token)
        self._deadline = deadline
        self._tls = tls
        self._idle: list[AsyncLink] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    def __repr__(self) -> str:
        return f"<AsyncClient {self.address}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections that are kept; the client can be used again."""
        self._drop()
        await asyncio.sleep(0)  # the event loop closes them in its next turn

    async def predict(
        self,
        model: str,
        input: Any = None,  # noqa: A002 - the word of the trade
        *,
        parts: Mapping[str, Any] | None = None,
        content_type: str | None = None,
        headers: Mapping[str, str] | None = None,
        deadline: float | None = None,
    ) -> Any:
        """Return a model's answer; see `Client.predict`.

        Raises:
            TypeError: the input is of no type that can be sent.
            ValueError: the input holds what its format cannot, or the model's name is none.
            OSError: the file cannot be read.
            TsctlError: as for every call.
        """
        call = await _prediction(model, input, parts, content_type, headers)
        return (await self._run(call, deadline)).value

    async def stream(
        self,
        model: str,
        input: Any = None,  # noqa: A002
        *,
        parts: Mapping[str, Any] | None = None,
        content_type: str | None = None,
        headers: Mapping[str, str] | None = None,
        deadline: float | None = None,
    ) -> AsyncGenerator[str | bytes, None]:
        """Yield a model's answer as it comes; see `Client.stream`. Who leaves early calls `aclose`.

        Arguments and errors are those of `predict`.
        """
        call = self._with_token(await _prediction(model, input, parts, content_type, headers))
        limit = time_of(self._deadline if deadline is None else deadline, time.monotonic())
        while True:
            link = await self._link(limit)
            status, answered = await link.send(call, limit)
            if status < 400:
                break
            answer = ReceivedAnswer(status, answered, b"".join([piece async for piece in link.pieces()]))
            self._keep(link)
            if not await _waited(answer, limit):
                check(answer)
        text = TextPieces(answered)
        async with aclosing(link.pieces()) as pieces:
            async for piece in pieces:
                if decoded := text.decode(piece):
                    yield decoded
        self._keep(link)
        if rest := text.end():
            yield rest

    async def register(
        self,
        target: str | os.PathLike[str],
        *,
        name: str | None = None,
        handler: str | None = None,
        workers: int | None = None,
        batch_size: int | None = None,
        max_delay: float | None = None,
        replace: bool = False,
        settings: Mapping[str, Any] | None = None,
        deadline: float | None = None,
    ) -> dict[str, Any]:
        """Register a model, wait until its workers are ready, and return the daemon's document; see `Client.register`.

        Raises:
            ValueError: there is nothing at the target's path, or it cannot be served.
            ErrorAnswer: the archive is invalid, or its handler does not load; the message holds the traceback.
            TsctlError: as for every call.
        """
        make = partial(calls.register, target, name, handler, workers, batch_size, max_delay, replace, settings)
        call = await asyncio.to_thread(make)  # it reads files
        return await self._document(call, deadline)

    async def unregister(self, model: str, *, deadline: float | None = None) -> None:
        """Unregister a model or a version; its running requests finish.

        Raises:
            TsctlError: as for every call.
        """
        await self._document(calls.unregister(model), deadline)

    async def scale(self, model: str, workers: int, *, deadline: float | None = None) -> None:
        """Change the number of workers, and wait until they are ready.

        Raises:
            TsctlError: as for every call.
        """
        await self._document(calls.scale(model, workers), deadline)

    async def describe(self, model: str, *, deadline: float | None = None) -> dict[str, Any]:
        """Return the document of one version: `MODEL` for the default version, or `MODEL/VERSION`.

        Raises:
            TsctlError: as for every call.
        """
        (document,) = (await self._run(calls.describe(model), deadline)).value
        return calls.as_document(document)

    async def models(self, *, deadline: float | None = None) -> list[str]:
        """Return the names of all registered models.

        Raises:
            TsctlError: as for every call.
        """
        names: list[str] = []
        page: str | None = None
        while True:
            document = await self._document(calls.models(page), deadline)
            names += [model["modelName"] for model in document["models"]]
            page = document.get("nextPageToken")
            if page is None:
                return names

    async def _document(self, call: Call, deadline: float | None) -> dict[str, Any]:
        return calls.as_document((await self._run(call, deadline)).value)

    async def _run(self, call: Call, deadline: float | None) -> ReceivedAnswer:
        """Send a call until it is answered; raises as every call does."""
        call = self._with_token(call)
        limit = time_of(self._deadline if deadline is None else deadline, time.monotonic())
        while True:
            link = await self._link(limit)
            answer = await link.answer(call, limit)
            self._keep(link)
            if not await _waited(answer, limit):
                return check(answer)

    def _with_token(self, call: Call) -> Call:
        return call._replace(headers=self._headers | call.headers)

    async def _link(self, limit: CallTime) -> AsyncLink:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # the connections belong to a loop that has ended
            self._drop()
            self._loop = loop
        while self._idle:
            link = self._idle.pop()
            if link.usable:
                return link
            link.close()
        return await connect(self.address, self._tls, limit)

    def _keep(self, link: AsyncLink) -> None:
        if link.usable and len(self._idle) < MOST_IDLE:
            self._idle.append(link)
        else:
            link.close()

    def _drop(self) -> None:
        while self._idle:
            self._idle.pop().close()


async def _prediction(
    model: str,
    value: Any,
    parts: Mapping[str, Any] | None,
    content_type: str | None,
    headers: Mapping[str, str] | None,
) -> Call:
    make = partial(calls.predict, model, value, parts, content_type, headers)
    # Files are read in a thread. Other values are encoded here: a thread costs more than most of them.
    files = any(isinstance(each, PurePath) for each in (value, *(parts or {}).values()))
    return await asyncio.to_thread(make) if files else make()


async def _waited(answer: ReceivedAnswer, limit: CallTime) -> bool:
    """Wait until the call may be sent again; return whether it may."""
    seconds = limit.wait(answer, time.monotonic(), random.random())
    if seconds is None:
        return False
    await asyncio.sleep(seconds)
    return True
