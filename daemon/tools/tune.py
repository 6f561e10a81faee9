"""`python -P -m tsctl.daemon.tools.tune`: serve a model under one setting after the other, for `tsctl tune`.

Each line of JSON on stdin is answered by one on stdout. The program ends when stdin is closed.

    an order (TuneOrder)    started    port: on 127.0.0.1; cores: that the model's workers may use
    settings                serving    threads: of each worker
                            failed     message: a setting is invalid, or the model does not load
    null                    used       cpu: seconds of processor time of this process and of the present workers

The settings are named as in `model-config.yaml`; all others stay as they are. HTTP, queue, dispatcher and workers are
the daemon's, in a process of their own: the model that is served goes on with its own workers, and shares the machine
with these.
"""

import asyncio
import logging
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from tsctl.daemon.api.inference.routes import inference_routes
from tsctl.daemon.config.config import Config, resolve
from tsctl.daemon.config.worker_env import model_environment
from tsctl.daemon.core.clock import Clock, LoopClock
from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.core.machine.processes import process_facts
from tsctl.daemon.http.limits import HttpLimits
from tsctl.daemon.http.listener import Listener
from tsctl.daemon.http.router import Router
from tsctl.daemon.marfile import parse_manifest
from tsctl.daemon.models.presence import all_ready, until
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.request import Source
from tsctl.daemon.models.request_path import Resources
from tsctl.daemon.models.settings import ModelSettings, Overrides, merge
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.tools.telling import tell
from tsctl.daemon.workers.cores import chosen_threads, usable_cores
from tsctl.daemon.workers.engine import Engine, local_pid
from tsctl.daemon.workers.local_engine import LocalEngine

_LONGEST = 1 << 24  # bytes of a line: a manifest and a model's settings are in it


class TuneOrder(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The model to serve.

    Attributes:
        model: the daemon's document `/tsctl/worker/MODEL`.
        settings: the daemon's settings that its workers' environment depends on.
        body_bytes: the length of a request's body.
    """

    model: Mapping[str, Any]
    settings: Mapping[str, str] = {}
    body_bytes: int = 0


class ModelServer:
    """Serves a model. Its workers stay from one setting to the next where their number is the same.

    Args:
        document: `/tsctl/worker/MODEL` of the daemon that serves it.

    Attributes:
        cores: that its workers may use.
        registry: has the model while it is served.
    """

    def __init__(self, engine: Engine, clock: Clock, config: Config, document: Mapping[str, Any]) -> None:
        self._engine, self._clock, self._config, self._document = engine, clock, config, document
        self._model: ModelVersion | None = None
        self.registry = Registry()
        self.cores = min(usable_cores(), len(self._settings({}).cpus) or usable_cores())

    @property
    def cpu(self) -> float:
        """Seconds of processor time of this process and of the present workers."""
        workers = () if self._model is None else self._model.pool.workers
        return time.process_time() + sum(process_facts(local_pid(worker)).cpu for worker in workers)

    async def serve(self, changes: Mapping[str, Any]) -> int:
        """Serve under these settings, the others as they are; return the threads of each worker.

        Raises:
            DaemonError: a setting is invalid, or a worker did not load.
        """
        settings = self._settings(changes)
        if self._model is not None and self._model.pool.wanted == settings.workers:
            self._model.change(settings)
            return self._model.pool.threads
        await self.unload()
        self._model = model = self._make(settings)
        self.registry.add(model)
        model.scale(settings.workers, settings.workers)
        try:
            await all_ready(model, settings.workers, lambda stage, done, total: None)
        except DaemonError:
            await self.unload()
            raise
        return model.pool.threads

    async def unload(self) -> None:
        """End the workers, if there are any."""
        model, self._model = self._model, None
        if model is not None:
            self.registry.discard(model)
            model.pool.kill()
            await until(model, lambda: model.pool.empty, None)
            model.close()

    def _make(self, settings: ModelSettings) -> ModelVersion:
        document = self._document
        python = None if document["python"] is None else Path(document["python"])
        manifest = parse_manifest(document["manifest"])
        source = Source(manifest.model_name, Path(document["directory"]), None, manifest, {}, python=python)
        resources = Resources(
            engine=self._engine,
            clock=self._clock,
            cores=self.cores,
            chosen_threads=chosen_threads(os.environ),
            log=_log,
        )
        return ModelVersion(source, settings, resources)

    def _settings(self, changes: Mapping[str, Any]) -> ModelSettings:
        document = self._document
        said = {name: value for name, value in document["settings"].items() if value is not None} | dict(changes)
        return merge(Overrides(), said, self._config).changed({"devices": document["devices"]}, "tune")


def _log(text: str, pid: int, stream: str) -> None:  # noqa: ARG001 - an OutputLog
    print(text, file=sys.stderr)  # noqa: T201 - the worker's output


async def converse() -> None:
    """Answer each line of stdin until it ends."""
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader(limit=_LONGEST)
    # Not a thread: blocked in a read, one would hold up the end after Ctrl-C.
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    order = msgspec.json.decode(await lines.readline(), type=TuneOrder)
    clock, config = LoopClock(loop), resolve(order.settings, {})
    engine = LocalEngine(loop, clock, model_environment(os.environ, config), metrics=config.model_metrics)
    server = ModelServer(engine, clock, config, order.model)
    listener = Listener(Router(inference_routes(server.registry)), HttpLimits(order.body_bytes + 1), clock)
    bound = await loop.create_server(listener.accept, "127.0.0.1", 0)
    tell("started", port=bound.sockets[0].getsockname()[1], cores=server.cores)
    try:
        while line := await lines.readline():
            changes = msgspec.json.decode(line)
            try:
                if changes is None:
                    tell("used", cpu=server.cpu)
                else:
                    tell("serving", threads=await server.serve(changes))
            except DaemonError as error:
                tell("failed", message=str(error))
    finally:
        bound.close()
        listener.abort()
        await server.unload()
        engine.close()


def main() -> int:
    # Failed requests are counted by the load generator: without a handler, logging would print them to stderr, too.
    logging.getLogger("tsctl.daemon.events").addHandler(logging.NullHandler())
    try:
        uvloop.run(converse())
    except (KeyboardInterrupt, BrokenPipeError):
        return 1
    except DaemonError as error:
        tell("failed", message=str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
