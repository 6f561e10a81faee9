"""The cost of a request outside the model: a daemon's HTTP, queue and dispatcher, a kept connection, and a client.

The routes, model and listener are the daemon's; the worker is a stub that immediately returns the model's response. The
client runs in a separate process (probe.py), like real clients.
"""

import asyncio
import json
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from daemon.api.inference.routes import inference_routes
from daemon.core.clock import FakeTimer, LoopClock
from daemon.core.job import Reply
from daemon.http.limits import HttpLimits
from daemon.http.listener import Listener
from daemon.http.router import Router
from daemon.marfile import parse_manifest
from daemon.models.registry import Registry
from daemon.models.settings import ModelSettings
from daemon.models.version import ModelVersion, Source
from daemon.tools.tune.replay import Overhead
from daemon.workers.stub import StubEngine

TOGETHER = 16  # concurrent requests, to separate each one's cost from the common latency


class _AtOnce(LoopClock):
    """A stub's clock: its batches take no time, not even the millisecond of a timer's step."""

    def later(self, delay: float, call: Callable[[], None]) -> FakeTimer:  # noqa: ARG002
        timer = FakeTimer(call)
        self.soon(lambda: timer.call() if timer.call is not None else None)
        return timer


@asynccontextmanager
async def asked(
    body: bytes, content_type: str, answer: bytes, together: int
) -> AsyncIterator[tuple[Process, ModelVersion]]:
    """Run a process that queries a trivial model; wait for its end on exit.

    Args:
        together: see probe.py.
    """
    model = _model(LoopClock(asyncio.get_running_loop()), answer)
    model.scale(1, 1)
    async with listening(model, len(body)) as port:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "daemon.tools.tune.measuring.probe", str(port), content_type, str(together),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        yield process, model
    await process.wait()


@asynccontextmanager
async def listening(model: ModelVersion, longest: int) -> AsyncIterator[int]:
    """Serve a model on the loopback interface within the block; yield the port.

    Args:
        longest: bytes of a request's body.
    """
    registry = Registry()
    registry.add(model)
    listener = Listener(Router(inference_routes(registry)), HttpLimits(longest + 1), model.clock)
    server = await asyncio.get_running_loop().create_server(listener.accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        listener.abort()


async def measure_overhead(body: bytes, content_type: str, answer: bytes) -> Overhead:
    """Query a trivial model, alone and concurrently; return the seconds of a request outside the model."""
    async with asked(body, content_type, answer, TOGETHER) as (process, _):
        told, _ = await process.communicate(body)
        alone, together = json.loads(told)
    cost = max(0.0, (together - alone) / (TOGETHER - 1))
    return Overhead(latency=max(0.0, alone - cost), cost=cost)


def _model(clock: LoopClock, answer: bytes) -> ModelVersion:
    manifest = parse_manifest({"model": {"modelName": "m", "modelVersion": "1.0", "handler": "none"}})
    source = Source("m", Path("/nowhere"), None, manifest, {})
    settings = ModelSettings(
        batch_size=TOGETHER, max_delay=0.0, policy="greedy", workers=1, max_workers=1, response_timeout=60.0,
        startup_timeout=60.0, queue_jobs=1000, queue_bytes=2**30,
    )  # fmt: skip
    engine = StubEngine(_AtOnce(asyncio.get_running_loop()), answer=lambda job: Reply(200, answer))
    return ModelVersion(source, settings, engine, clock, cores=1)
