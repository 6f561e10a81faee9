"""A cluster without Ray: actors are objects of this process, and a test says what becomes of them."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tsctl.handlers.ray.errors import CallError, OptionsRefused
from tsctl.handlers.ray.messages import ActorOptions
from tsctl.handlers.ray.node.actor import ActorFacts
from tsctl.handlers.ray.node.versions import versions_here


class FakeActor:
    """An actor whose methods are the test: each call waits until `answer` or `fail`.

    Attributes:
        calls: all that were made, oldest first: method and arguments.
    """

    def __init__(self, name: str, options: ActorOptions) -> None:
        self.name, self.options = name, options
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.killed = False
        self._waiting: list[tuple[str, asyncio.Future[Any]]] = []
        self._broken: CallError | None = None

    async def call(self, method: str, *arguments: Any) -> Any:
        self.calls.append((method, arguments))
        if self._broken is not None:
            raise self._broken
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append((method, future))
        return await future

    def send(self, method: str, *arguments: Any) -> None:
        self.calls.append((method, arguments))

    def kill(self) -> None:
        self.killed = True

    @property
    def asked(self) -> list[str]:
        """The methods of the calls that wait for an answer."""
        return [method for method, future in self._waiting if not future.done()]

    def answer(self, method: str, result: Any) -> None:
        """Answer the oldest call of this method."""
        index = [name for name, _ in self._waiting].index(method)
        self._waiting.pop(index)[1].set_result(result)

    def fail(self, error: CallError) -> None:
        """Fail all calls that wait, and all later ones."""
        self._broken = error
        for _, future in self._waiting:
            if not future.done():
                future.set_exception(error)
        self._waiting.clear()


class FakeCluster:
    """Makes such actors.

    Attributes:
        actors: all that were made, in order.
        avoided: the nodes that are avoided.
        refuses: why it accepts no options; empty if it does.
        unreadable: whether models' files cannot be read.
        pending: why an actor has no node.
    """

    def __init__(self, address: str = "auto") -> None:
        self.address = address
        self.actors: list[FakeActor] = []
        self.avoided: list[str] = []
        self.refuses = ""
        self.unreadable = False
        self.pending = "it takes 1 CPU, and CPU is in use: 0 free"

    async def connect(self, waits: Callable[[str], None]) -> None:
        """Do nothing: there is always a connection."""

    def make(self, name: str, options: ActorOptions) -> FakeActor:
        if self.refuses:
            raise OptionsRefused(self.refuses)
        self.actors.append(FakeActor(name, options))
        return self.actors[-1]

    async def why_pending(self, options: ActorOptions) -> str:
        return self.pending

    async def digest_of(self, directory: Path) -> str:
        if self.unreadable:
            raise FileNotFoundError(2, "No such file or directory", str(directory))
        return f"digest of {directory}"

    async def pieces_of(self, digest: str, directory: Path) -> list[Any]:
        return ["piece 1", "piece 2"]

    def avoid(self, node_id: str, name: str) -> None:
        self.avoided.append(node_id)


def facts(node: str = "n1") -> ActorFacts:
    """Return the facts of an actor on a node like this machine."""
    return ActorFacts(f"id of {node}", node, versions_here())


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop turn until something is true."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - any fact, also one of another thread
            await asyncio.sleep(0.001)
