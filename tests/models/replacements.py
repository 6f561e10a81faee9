"""Archives that take the place of others, and registrations that say so."""

import asyncio
from typing import Any

from tests.kit.archives import model_files, write_mar
from tests.kit.daemon import NEVER, StubDaemon, until
from tsctl.daemon.models.registrar import Registration
from tsctl.daemon.models.settings import Overrides
from tsctl.daemon.models.version import ModelVersion


def other(bench: StubDaemon, name: str = "m", version: str = "1.0", content: bytes = b"other") -> str:
    """Put another archive of a version into the store."""
    write_mar(bench.store / "other.mar", model_files(name, version) | {"weights": content})
    return "other.mar"


async def replace(bench: StubDaemon, url: str, *, synchronous: bool = True, **overrides: Any) -> ModelVersion:
    request = Registration(url=url, overrides=Overrides(**overrides), synchronous=synchronous)
    return await bench.registrar.register(request, replace=True)


async def begin(bench: StubDaemon, url: str, **overrides: Any) -> "asyncio.Future[ModelVersion]":
    """Start a replacement whose workers stay on their way."""
    bench.engine.load_time = NEVER
    before = len(bench.engine.workers)
    loading = asyncio.ensure_future(replace(bench, url, **overrides))
    await until(lambda: len(bench.engine.workers) > before)
    return loading


def ready(bench: StubDaemon) -> None:
    """Let the youngest worker come up."""
    bench.engine.workers[-1]._load()
