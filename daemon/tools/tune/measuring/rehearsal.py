"""Trials: this process serves the real model under one setting after the other, and clients measure the performance.

HTTP, queue, dispatcher and workers are the daemon's; the clients run in a separate process (clients.py), like real
clients.
"""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from daemon.core.clock import Clock
from daemon.marfile import parse_manifest
from daemon.models.settings import ModelSettings
from daemon.models.version import ModelVersion, Source
from daemon.tools.tune.candidates import Candidate
from daemon.tools.tune.load import LoadPlan, Turnarounds
from daemon.tools.tune.measuring.clients import ClientOrder, ClientResults
from daemon.tools.tune.measuring.harness import HarnessLoadFailed
from daemon.tools.tune.measuring.overhead import listening
from daemon.tools.tune.order import TuneOrder
from daemon.workers.cores import chosen_threads, usable_cores
from daemon.workers.engine import Engine

SECONDS = 3.0  # of a trial, per second that a batch size is measured
WARM_UP = 1.0  # of warm-up, likewise: the collector learns the traffic
ENOUGH = 300  # responses
LEAST_PAUSE = 0.001  # seconds; shorter ones are the recorded overhead, not a pause

Bucket = tuple[float, float, float]  # least, most, weight; see ClientOrder


class Rehearsal:
    """Serves a model to the clients of a plan.

    Args:
        body: of the clients' request.
    """

    def __init__(self, engine: Engine, clock: Clock, order: TuneOrder, body: bytes, plan: LoadPlan) -> None:
        self._engine = engine
        self._clock = clock
        self._order = order
        self._body = body
        self._plan = plan
        self._model: ModelVersion | None = None
        self._changed = asyncio.Event()

    async def attempt(self, setting: Candidate) -> ClientResults | None:
        """Serve under a setting; return the clients' results, None if any response was an error.

        Raises:
            HarnessLoadFailed: a worker did not load.
        """
        model = await self._serve(setting)
        async with listening(model, len(self._body)) as port:
            pauses: Sequence[Bucket] = ()
            turnarounds = self._plan.turnarounds
            if turnarounds is not None and turnarounds.median >= LEAST_PAUSE:
                await self._ask(port, 0.0, ())
                pauses = pauses_of(turnarounds, model.traffic.turnarounds.median)
            seen = await self._ask(port, SECONDS, pauses)
        return None if seen is None or seen.errors or not seen.throughput else seen

    async def close(self) -> None:
        model, self._model = self._model, None
        if model is not None:
            model.pool.kill()
            while not model.pool.empty:
                await self._change()
            model.close()

    async def _serve(self, setting: Candidate) -> ModelVersion:
        """Return the model served under a setting; workers are kept if their number is unchanged."""
        model = self._model
        if model is not None and model.pool.wanted == setting.workers:
            model.change(self._settings(setting))
            return model
        await self.close()
        self._model = model = self._make(setting)
        model.scale(setting.workers, setting.workers)
        while model.pool.ready < setting.workers:
            if model.pool.failure is not None:
                raise HarnessLoadFailed(model.pool.failure.error, model.pool.failure.traceback)
            await self._change()
        return model

    def _make(self, setting: Candidate) -> ModelVersion:
        worker = self._order.worker
        python = None if worker["python"] is None else Path(worker["python"])
        manifest = parse_manifest(worker["manifest"])
        source = Source(manifest.model_name, Path(worker["directory"]), None, manifest, {}, python=python)
        model = ModelVersion(
            source, self._settings(setting), self._engine, self._clock, cores=usable_cores(),
            chosen_threads=chosen_threads(os.environ), log=_log,
        )  # fmt: skip
        model.listeners[self._changed.set] = None
        return model

    def _settings(self, setting: Candidate) -> ModelSettings:
        worker: Mapping[str, Any] = self._order.worker
        served = self._order.trace["settings"]
        return ModelSettings(
            batch_size=setting.batch_size, max_delay=setting.max_delay, policy=setting.policy,
            workers=setting.workers, max_workers=setting.workers, response_timeout=served["responseTimeout"],
            startup_timeout=served["startupTimeout"], queue_jobs=2 * self._plan.clients + 100,
            queue_bytes=2**40, retry=False, devices=worker["devices"],
            optimize=worker["optimize"],
        )  # fmt: skip

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    async def _ask(self, port: int, seconds: float, pauses: Sequence[Bucket]) -> ClientResults | None:
        """Run the clients; return None if they failed."""
        each = self._order.seconds
        calls = ClientOrder(
            port=port, target=f"/predictions/{quote(self._order.trace['modelName'])}",
            content_type=self._order.content_type, body_bytes=len(self._body), clients=self._plan.clients,
            warm_up=WARM_UP * each, seconds=seconds * each, enough=ENOUGH, pauses=pauses,
        )  # fmt: skip
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "daemon.tools.tune.measuring.clients",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # sessions share the cores (sched_autogroup): as with a real client
        )  # fmt: skip
        told, _ = await process.communicate(msgspec.json.encode(calls) + b"\n" + self._body)
        return msgspec.json.decode(told, type=ClientResults) if process.returncode == 0 else None


def pauses_of(turnarounds: Turnarounds, at_once: float) -> list[Bucket]:
    """Return the clients' pauses.

    Args:
        turnarounds: the recorded times from a response to the next request.
        at_once: the same for clients without a pause, in seconds.
    """
    if turnarounds.median - at_once < LEAST_PAUSE:
        return []
    return [
        (max(0.0, low - at_once), max(0.0, high - at_once), weight)
        for (low, high), weight in zip(turnarounds.edges, turnarounds.weights, strict=True)
    ]


def _log(text: str, pid: int, stream: str) -> None:  # noqa: ARG001 - an OutputLog
    print(text, file=sys.stderr)  # noqa: T201 - the worker's output
