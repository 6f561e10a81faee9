"""The served model: its workers are kept from one setting to the next where their number is the same."""

import asyncio
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tsctl.daemon.api.inference.routes import inference_routes
from tsctl.daemon.config.config import Config
from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.machine.processes import process_facts
from tsctl.daemon.http.limits import HttpLimits
from tsctl.daemon.http.listener import Listener
from tsctl.daemon.http.router import Router
from tsctl.daemon.marfile import parse_manifest
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.settings import ModelSettings, Overrides, merge
from tsctl.daemon.models.version import ModelVersion, Source
from tsctl.daemon.workers.cores import chosen_threads, threads_for, usable_cores
from tsctl.daemon.workers.engine import Engine, local_pid

# Measured on this machine.
_HERE = {"engine": "local", "ray": None, "loading": "at_once"}


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


class NotServed(Exception):
    """The model does not load; `details` is the handler's traceback."""

    def __init__(self, message: str, details: str) -> None:
        super().__init__(f"the model does not load: {message}")
        self.details = details


class ModelServer:
    """Serves a model on the loopback interface.

    Attributes:
        cores: that its workers may use.
        threads: of each worker.
    """

    def __init__(self, engine: Engine, clock: Clock, config: Config, order: TuneOrder) -> None:
        self._engine, self._clock, self._config, self._order = engine, clock, config, order
        cpus = self._settings({}).cpus
        self.cores = min(usable_cores(), len(cpus) or usable_cores())
        self.threads = self.cores
        self._model: ModelVersion | None = None
        self._changed = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._listener: Listener | None = None

    @property
    def cpu(self) -> float:
        """Seconds of processor time of this process and of the present workers."""
        workers = () if self._model is None else self._model.pool.workers
        return time.process_time() + sum(process_facts(local_pid(worker)).cpu for worker in workers)

    async def serve(self, changes: Mapping[str, Any]) -> int:
        """Serve under these settings, the others as they are; return the port.

        Raises:
            NotServed: a worker did not load.
            DaemonError: a setting is invalid.
        """
        self._stop_listening()
        settings = self._settings(changes)
        if self._model is not None and self._model.pool.wanted == settings.workers:
            self._model.change(settings)
        else:
            await self._unload()
            await self._load(settings)
        assert self._model is not None
        registry = Registry()
        registry.add(self._model)
        limits = HttpLimits(self._order.body_bytes + 1)
        self._listener = Listener(Router(inference_routes(registry)), limits, self._clock)
        self._server = await asyncio.get_running_loop().create_server(self._listener.accept, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        self._stop_listening()
        await self._unload()

    def _settings(self, changes: Mapping[str, Any]) -> ModelSettings:
        document = self._order.model
        said = {name: value for name, value in document["settings"].items() if value is not None} | dict(changes)
        own = {"devices": document["devices"], "optimize": document["optimize"]}
        return merge(Overrides(), said, self._config).changed(own | _HERE, "tune")

    async def _load(self, settings: ModelSettings) -> None:
        document = self._order.model
        python = None if document["python"] is None else Path(document["python"])
        manifest = parse_manifest(document["manifest"])
        source = Source(manifest.model_name, Path(document["directory"]), None, manifest, {}, python=python)
        chosen = chosen_threads(os.environ)
        self.threads = threads_for(self.cores, settings.workers, chosen)
        self._model = model = ModelVersion(
            source, settings, self._engine, self._clock, cores=self.cores, chosen_threads=chosen, log=_log
        )
        model.listeners[self._changed.set] = None
        model.scale(settings.workers, settings.workers)
        while model.pool.ready < settings.workers:
            failure = model.pool.failure
            if failure is not None:
                await self._unload()
                raise NotServed(failure.error, failure.traceback)
            await self._change()

    async def _unload(self) -> None:
        model, self._model = self._model, None
        if model is not None:
            model.pool.kill()
            while not model.pool.empty:
                await self._change()
            model.close()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _stop_listening(self) -> None:
        if self._server is not None and self._listener is not None:
            self._server.close()
            self._listener.abort()


def _log(text: str, pid: int, stream: str) -> None:  # noqa: ARG001 - an OutputLog
    print(text, file=sys.stderr)  # noqa: T201 - the worker's output
