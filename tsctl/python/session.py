"""The common part of both clients: connections that are kept, and calls that are sent until they are answered."""

import os
import random
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from tsctl.python import calls
from tsctl.python.answers import ReceivedAnswer, check
from tsctl.python.calls import Call, CallTime, time_of
from tsctl.python.transport.address import read_address
from tsctl.python.transport.link import Connect, Link, open_link

if TYPE_CHECKING:
    import ssl

MOST_IDLE = 32  # connections that are kept for further calls


class ClientSession(ABC):
    """A daemon, and the connections to it; `Client` and `AsyncClient` add the methods that users call."""

    _connect: Connect

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
        self._idle: list[Link] = []
        self._last_owner: object = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.address}>"

    @abstractmethod
    def _owner(self) -> object:
        """Return what connections belong to: another one cannot use them."""

    @abstractmethod
    async def _pause(self, seconds: float) -> None:
        """Wait before a call is sent again."""

    async def _answer(self, call: Call, deadline: float | None) -> ReceivedAnswer:
        """Send a call until it is answered; raises as every call does."""
        link, status, headers = await self._begin(call, deadline)
        answer = await link.rest(status, headers)
        self._keep(link)
        return answer

    async def _document(self, call: Call, deadline: float | None) -> dict[str, Any]:
        return calls.as_document((await self._answer(call, deadline)).value)

    async def _description(self, model: str, deadline: float | None) -> dict[str, Any]:
        (document,) = (await self._answer(calls.describe(model), deadline)).value
        return calls.as_document(document)

    async def _names(self, deadline: float | None) -> list[str]:
        names: list[str] = []
        page: str | None = None
        while True:
            document = await self._document(calls.models(page), deadline)
            names += [model["modelName"] for model in document["models"]]
            page = document.get("nextPageToken")
            if page is None:
                return names

    async def _begin(self, call: Call, deadline: float | None) -> tuple[Link, int, dict[str, str]]:
        """Send a call until it is answered well; return its connection, and the status and headers of the answer."""
        call = call._replace(headers=self._headers | call.headers)
        limit = time_of(self._deadline if deadline is None else deadline, time.monotonic())
        while True:
            link = await self._link(limit)
            status, headers = await link.send(call, limit)
            if status < 400:
                return link, status, headers
            answer = await link.rest(status, headers)
            self._keep(link)
            seconds = limit.wait(answer, time.monotonic(), random.random())
            if seconds is None:
                check(answer, calls.other_address(call, self.address))
            else:
                await self._pause(seconds)

    async def _link(self, limit: CallTime) -> Link:
        owner = self._owner()
        if owner != self._last_owner:
            self._drop()
            self._last_owner = owner
        while True:
            try:
                link = self._idle.pop()  # threads share the list
            except IndexError:
                return await open_link(type(self)._connect, self.address, self._tls, limit)
            if link.usable:
                return link
            link.close()

    def _keep(self, link: Link) -> None:
        if link.open and len(self._idle) < MOST_IDLE:
            self._idle.append(link)
        else:
            link.close()

    def _drop(self) -> None:
        while self._idle:
            self._idle.pop().close()
