"""Fixtures: a scripted daemon, and one way to call both clients."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.tsctl.python.scripted import ScriptedDaemon
from tsctl import AsyncClient, Client

Script = Callable[..., ScriptedDaemon]


class Caller(Protocol):
    """Call a method of a client, with `Client` and with `AsyncClient`."""

    def __call__(self, method: str, *arguments: Any, **options: Any) -> Any: ...


class SyncCaller:
    """Calls `Client`."""

    def __init__(self, daemon: ScriptedDaemon, **options: Any) -> None:
        self.client = Client(daemon.path, **options)

    def __call__(self, method: str, *arguments: Any, **options: Any) -> Any:
        result = getattr(self.client, method)(*arguments, **options)
        return list(result) if method == "stream" else result

    def close(self) -> None:
        self.client.close()


class AsyncCaller:
    """Calls `AsyncClient`, all calls on one loop."""

    def __init__(self, daemon: ScriptedDaemon, **options: Any) -> None:
        self.client = AsyncClient(daemon.path, **options)
        self._runner = asyncio.Runner()

    def __call__(self, method: str, *arguments: Any, **options: Any) -> Any:
        async def call() -> Any:
            result = getattr(self.client, method)(*arguments, **options)
            return [piece async for piece in result] if method == "stream" else await result

        return self._runner.run(call())

    def close(self) -> None:
        self._runner.run(self.client.close())
        self._runner.close()


@pytest.fixture
def scripted(tmp_path: Path) -> Iterator[Script]:
    """Start a daemon that answers as its script says."""
    daemons: list[ScriptedDaemon] = []

    def start(*script: bytes | list[bytes]) -> ScriptedDaemon:
        daemons.append(ScriptedDaemon(tmp_path / f"{len(daemons)}.sock", script))
        return daemons[-1]

    yield start
    for daemon in daemons:
        daemon.close()


@pytest.fixture(params=[SyncCaller, AsyncCaller], ids=["Client", "AsyncClient"])
def caller(request: pytest.FixtureRequest) -> Iterator[Callable[..., Caller]]:
    """Make a caller of a daemon: each test is run with both clients."""
    made: list[SyncCaller | AsyncCaller] = []

    def make(daemon: ScriptedDaemon, **options: Any) -> Caller:
        made.append(request.param(daemon, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def bodies(daemon: ScriptedDaemon) -> Sequence[bytes]:
    return [asked.body for asked in daemon.asked]
