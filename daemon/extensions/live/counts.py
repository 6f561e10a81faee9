"""`GET /tsctl/live`: the counts of all versions, from which a client makes rates by asking twice.

time, started         now, and when the daemon started, seconds since the epoch
pid, version          of the daemon
gpus                  those of the daemon, as in `/tsctl/status`
memory                of `--models-memory`: bytes by device, `budget` and `used` by all models; empty without a budget
models                each registered version:

    name, version, default, state, troubles    as in `/tsctl/status`
    inPieces                          whether the handler is known to answer in pieces
    ready, wanted, restarting         workers; the last: places whose worker has ended and is being replaced
    batchSize, maxBatchDelay, policy  the settings, milliseconds
    queued, running, oldestMs         requests now; the time that the oldest of those queued has waited, null for none
    learned                           `bestSize` and `sizes` as in the describe document's `batching`
    arrivalsPerSecond, recent         learned rate; the last minute as in `/tsctl/status`
    requests                          answers since the registration: `total`, and `codes` by status
    refused, expired                  requests by reason; requests without time left by where they were
    latency                           answered requests by their time: `counts` of the buckets up to each of `bounds`,
                                      and beyond the last one; `sum`: seconds
    batches                           sent to workers: `total`, and how many `requests` they had
    workers                           of each place: `pid`, 0 without a process; `node` of a cluster, empty for
                                      this machine; `state`; `memory`, resident bytes, and `cpuSeconds`, 0 on a node;
                                      `gpuMemory`, bytes by GPU, null while unknown
    gpuMemory                         bytes that all workers hold, by GPU, null while unknown; empty on the CPU
    lastError                         why the workers failed, or the latest prediction; null without an error

Extensions add fields of their own (daemon/extensions/).

`requests`, `refused`, `expired`, `latency` and `batches` only rise, until the daemon is restarted.
"""

import os
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tsctl.daemon.api.management.batching import best_size_of
from tsctl.daemon.api.management.commands import FOUND, word_routes
from tsctl.daemon.api.management.describe import FieldsOf, gpu_memory, no_fields, overview_of
from tsctl.daemon.api.management.status import tsctl_version
from tsctl.daemon.api.openapi import STRING, answer, listed, members, operation, query_parameters, whole
from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.machine.gpu import Gpus
from tsctl.daemon.core.machine.processes import process_facts
from tsctl.daemon.core.texts.json_text import json_bytes
from tsctl.daemon.declarations import VersionView
from tsctl.daemon.events.events import Events
from tsctl.daemon.extension import Service
from tsctl.daemon.extensions.live.batches import answer_batches
from tsctl.daemon.extensions.live.streams import EventStreams
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import JSON, Response
from tsctl.daemon.http.router import Audience, Route
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.server.fields import Fields
from tsctl.daemon.workers.engine import local_pid

_BATCHES = members({"last": whole(0), "batches": listed({"type": "object"})})
OPERATIONS = {
    "/tsctl/live": {
        "get": operation(
            "live", [], {"200": answer("The counts of all models; two answers make rates.", {"type": "object"})}, FOUND
        )
    },
    "/tsctl/batches": {
        "get": operation(
            "batches", query_parameters({"model": STRING, "after": whole(0)}, "model"),
            {"200": answer("The latest batches of a version, the oldest first.", _BATCHES)}, FOUND,
        )
    },
}  # fmt: skip


class LiveService(Service):
    def __init__(self, registry: Registry, fields: Fields, gpus: Gpus, events: Events, clock: Clock) -> None:
        self._registry, self._fields, self._gpus = registry, fields, gpus
        self.streams = EventStreams(events, clock)
        batches = partial(answer_batches, registry)
        self._routes = word_routes({"live": self._answer_counts, "batches": batches, "events": self.streams.answer})

    def routes(self, audience: Audience) -> Mapping[str, Route]:
        return self._routes if audience is Audience.OPERATORS else {}

    async def settle(self, *, replaced: bool) -> None:
        del replaced
        self.streams.close()

    def _answer_counts(self, exchange: Exchange) -> None:
        fields = self._fields
        document = live_document(self._registry, fields.started, time.time(), fields.of)
        document |= {"gpus": self._gpus.document} | fields.own()
        exchange.respond(Response(200, json_bytes(document), (JSON,)))


def live_document(registry: Registry, started: float, now: float, fields: FieldsOf = no_fields) -> dict[str, Any]:
    """Return the document; both times in seconds since the epoch."""
    return {
        "time": now,
        "started": started,
        "pid": os.getpid(),
        "version": tsctl_version(),
        "models": [_model(model, registry) | fields(VersionView.LIVE, model) for model in registry],
    }


def _model(model: ModelVersion, registry: Registry) -> dict[str, Any]:
    pool, metrics, now = model.pool, model.metrics, model.clock.now()
    missing = pool.wanted - pool.ready - pool.given_up
    latency, sizes = metrics.fine, metrics.batch_size
    return overview_of(model, default=registry.is_default(model)) | {
        "inPieces": model.declared is not None and model.declared.streams,
        "restarting": max(0, missing) if model.was_ready else 0,
        "oldestMs": round((now - model.queue.since()[1]) * 1000, 3) if len(model.queue) else None,
        "learned": best_size_of(model),
        "requests": {
            "total": metrics.codes.total(),
            "codes": {str(k): v for k, v in sorted(metrics.codes.items())},
            "errors": metrics.counts.errors,
        },
        "refused": dict(sorted(metrics.refusals.items())),
        "expired": dict(sorted(metrics.expirations.items())),
        "latency": {"bounds": latency.bounds, "counts": latency.counts, "sum": latency.sum},
        "batches": {"total": sum(sizes.counts), "requests": round(sizes.sum)},
        "workers": list(_workers(model)),
        "lastError": _last_error(model),
    }


def _workers(model: ModelVersion) -> Iterator[dict[str, Any]]:
    for slot in model.pool.slots:
        worker = slot.worker
        pid = 0 if worker is None else worker.pid
        facts = process_facts(0 if worker is None else local_pid(worker))
        yield {
            "pid": pid,
            "node": "" if worker is None else worker.node,
            "state": slot.state.name if worker is None else worker.state.name,
            "memory": facts.memory,
            "cpuSeconds": round(facts.cpu, 2),
            "gpuMemory": {} if worker is None else gpu_memory(worker),
        }


def _last_error(model: ModelVersion) -> str | None:
    failure, errors = model.pool.failure, model.reports.errors.latest()
    if failure is not None:
        return failure.error
    return errors[-1].message.partition("\n")[0] if errors else None
