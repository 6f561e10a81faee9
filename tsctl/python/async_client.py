"""The client for asyncio. The methods, their arguments and their errors are those of `Client` (client.py)."""

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from functools import partial
from pathlib import PurePath
from typing import Any, Self

from tsctl.python import calls
from tsctl.python.answers import TextPieces
from tsctl.python.calls import Call
from tsctl.python.session import ClientSession
from tsctl.python.transport.waiting import connect


class AsyncClient(ClientSession):
    """A daemon, for programs on asyncio; arguments, errors and repetitions as of `Client`.

    Any number of tasks of one event loop may use a client; each call has a connection of its own while it lasts. A call
    that is cancelled closes its connection, so that the daemon drops the request if no worker has it.
    """

    _connect = staticmethod(connect)

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
        return (await self._answer(call, deadline)).value

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
        call = await _prediction(model, input, parts, content_type, headers)
        link, _, answered = await self._begin(call, deadline)
        text = TextPieces(answered)
        try:
            while piece := await link.piece():
                if decoded := text.decode(piece):
                    yield decoded
        finally:
            link.leave()
        self._keep(link)
        if rest := text.rest():
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
        return await self._description(model, deadline)

    async def models(self, *, deadline: float | None = None) -> list[str]:
        """Return the names of all registered models.

        Raises:
            TsctlError: as for every call.
        """
        return await self._names(deadline)

    def _owner(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()  # connections of a loop that has ended are of no use

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


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
