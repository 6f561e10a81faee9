"""The describe document of a model version: TorchServe's keys in TorchServe's order, then `tsctl`."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from tsctl.daemon.api.management.batching import batching_of
from tsctl.daemon.core.machine.cards import MIB
from tsctl.daemon.core.machine.processes import process_facts
from tsctl.daemon.declarations import VersionView
from tsctl.daemon.metrics.histogram import Recent
from tsctl.daemon.models.archives.manifest import misspelt, unused_devices
from tsctl.daemon.models.reporting.model_state import ModelState
from tsctl.daemon.models.reporting.trouble import troubles
from tsctl.daemon.models.tensors import file_tensors
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.tables import MODEL_SETTINGS
from tsctl.daemon.workers.engine import Worker, local_pid
from tsctl.daemon.workers.state import WorkerState

FieldsOf = Callable[[VersionView, ModelVersion], dict[str, Any]]  # of extensions, in one of a version's documents
FIRST_WORKER_ID = 9000  # TorchServe numbers workers by their ports, from this one


def no_fields(view: VersionView, model: ModelVersion) -> dict[str, Any]:
    """Return no fields: there is no extension."""
    del view, model
    return {}


def with_fields(document: dict[str, Any], further: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document with further fields; an object that is there already gets those of its name."""
    joined = dict(document)
    for name, value in further.items():
        there = joined.get(name)
        joined[name] = {**there, **value} if isinstance(there, dict) and isinstance(value, Mapping) else value
    return joined


# TorchServe shows these of each version.
_OF_SEQUENCES = ("sequenceMaxIdleMSec", "sequenceTimeoutMSec", "maxNumSequence", "maxSequenceJobQueueSize")

_RETRY_TIME = 300  # seconds, TorchServe's default


def describe(
    model: ModelVersion,
    fields: FieldsOf = no_fields,
    others: Iterable[ModelVersion] = (),
) -> dict[str, Any]:
    """Return the document of one version that answers `GET /models/MODEL/VERSION`.

    Args:
        fields: returns those of extensions: for `tsctl`, and TorchServe's members whose values they know.
        others: the versions that share its cores.
    """
    settings = model.settings
    named = model.source.document.get("deviceIds")
    document = {
        "modelName": model.name,
        "modelVersion": model.version,
        "modelUrl": model.source.url,
        "runtime": model.source.manifest.runtime,
        "minWorkers": model.presence.least,
        "maxWorkers": model.presence.most,
        "batchSize": settings.batch_size,
        "maxBatchDelay": round(settings.max_delay * 1000),
        "responseTimeout": round(settings.response_timeout),
        "startupTimeout": round(settings.startup_timeout),
        "maxRetryTimeoutInSec": _retry_time(model.source.document),
        "clientTimeoutInMills": round(settings.client_timeout * 1000),
        "parallelType": "",
        "parallelLevel": 0,
        "deviceType": "gpu" if settings.devices else "cpu",
        **({"deviceIds": named} if named and settings.devices else {}),
        "continuousBatching": settings.continuous,
        "useJobTicket": False,
        "useVenv": model.source.document.get("useVenv") is True,  # so it is with each requirements file
        "stateful": False,
        **dict.fromkeys(_OF_SEQUENCES, 0),
        "loadedAtStartup": model.at_startup,
        "workers": [_worker(index, worker) for index, worker in enumerate(model.pool.workers)],
        "jobQueueStatus": {
            "remainingCapacity": max(0, model.queue.max_jobs - model.waiting),
            "pendingRequests": model.waiting,
        },
    }
    ours = with_fields(_ours(model, others), fields(VersionView.DESCRIPTION, model))
    return document | fields(VersionView.MEMBERS, model) | {"tsctl": ours}


def _worker(index: int, worker: Worker) -> dict[str, Any]:
    started = time.gmtime(worker.started)
    milliseconds = int(worker.started % 1 * 1000)
    return {
        "id": str(FIRST_WORKER_ID + index),
        "startTime": time.strftime("%Y-%m-%dT%H:%M:%S", started) + f".{milliseconds:03d}Z",
        "status": "READY" if worker.state is WorkerState.READY else "UNLOADING",
        "memoryUsage": process_facts(local_pid(worker)).memory,
        "pid": worker.pid,
        **({"node": worker.node} if worker.node else {}),
        "gpu": bool(worker.gpu_ids),
        "gpuUsage": _gpu_usage(worker),
        **({"gpuMemory": gpu_memory(worker)} if worker.gpu_ids else {}),
    }


def troubles_of(model: ModelVersion, recent: Recent) -> list[str]:
    """Return the troubles of a version, the worst first; `recent` is its last minute."""
    queue, ended = model.queue, model.reports.ended
    filled = queue.bytes / queue.max_bytes if queue.max_bytes else 0.0
    now = model.clock.now()
    return troubles(now, model.word, recent.requests, recent.errors, model.waiting, queue.max_jobs, filled, ended)


def recent_document(recent: Recent) -> dict[str, float | None]:
    """Return the last minute of a version, in milliseconds."""
    return {
        "seconds": round(recent.seconds),
        "requests": recent.requests,
        "errors": recent.errors,
        "p50Ms": None if recent.p50 is None else round(recent.p50 * 1000, 3),
        "p99Ms": None if recent.p99 is None else round(recent.p99 * 1000, 3),
    }


def overview_of(model: ModelVersion, *, default: bool) -> dict[str, Any]:
    """Return what `/tsctl/status` and `/tsctl/live` both tell of a version."""
    now, settings = model.clock.now(), model.settings
    recent = model.metrics.recent(now)
    return {
        "name": model.name,
        "version": model.version,
        "default": default,
        "state": model.word,
        "troubles": troubles_of(model, recent),
        "ready": model.pool.ready,
        "wanted": model.pool.wanted,
        "batchSize": settings.batch_size,
        "maxBatchDelay": round(settings.max_delay * 1000, 3),
        "policy": settings.policy,
        "queued": model.waiting,
        "running": model.running,
        "arrivalsPerSecond": round(model.traffic.rate_at(now), 3),
        "gpuMemory": version_gpu_memory(model),
        "recent": recent_document(recent),
    }


def _retry_time(document: Mapping[str, Any]) -> int:
    """Return `maxRetryTimeoutInSec` as the archive's model-config.yaml has it; TorchServe's default without."""
    written = document.get("maxRetryTimeoutInSec")
    return written if type(written) is int and written > 0 else _RETRY_TIME


def gpu_memory(worker: Worker) -> dict[str, int | None]:
    """Return GPU → the bytes that the worker tells to hold there, None while it tells nothing; empty on the CPU."""
    return {str(gpu): worker.gpu_memory.get(gpu) for gpu in worker.gpu_ids}


def version_gpu_memory(model: ModelVersion) -> dict[str, int | None]:
    """Return as `gpu_memory` what all workers of a version hold together."""
    together: dict[str, int | None] = {}
    for worker in model.pool.workers:
        for gpu, size in gpu_memory(worker).items():
            before = together.get(gpu)
            together[gpu] = before if size is None else (before or 0) + size
    return together


def _gpu_usage(worker: Worker) -> str:
    """Return the GPUs as TorchServe does, and of its figures, which are the card's, the memory: the worker's own."""
    if not worker.gpu_ids:
        return "N/A"
    gpus = f"gpuId::{','.join(map(str, worker.gpu_ids))}"
    used = sum(worker.gpu_memory.values()) // MIB
    return f"{gpus} memory.used [MiB]::{used} MiB" if worker.gpu_memory else gpus


def _ours(model: ModelVersion, others: Iterable[ModelVersion]) -> dict[str, Any]:
    pool, recent = model.pool, model.metrics.recent(model.clock.now())
    failure, error = pool.failure, None
    if failure is not None:
        error = {"message": failure.error, "traceback": failure.traceback, "output": []}
        if pool.last_exit is not None and not failure.traceback:
            error["output"] = list(pool.last_exit.output)
    return {
        "state": model.word,
        "troubles": troubles_of(model, recent),
        "recent": recent_document(recent),
        "retryable": (model.state is ModelState.FAILED or model.crashing) and not model.lost,
        "error": error,
        "batching": batching_of(model),
        "workers": [slot.worker.state.name if slot.worker else slot.state.name for slot in pool.slots],
        "threads": {
            "cores": pool.cores,
            "perWorker": pool.threads,
            "warning": pool.crowded_with(each.pool for each in others),
        },
        "waits": next((worker.waits for worker in pool.workers if worker.waits), None),
        "lastExit": pool.last_exit.reason if pool.last_exit is not None else None,
        "settings": _settings(model),
        "declared": _declared(model),
        "tensors": file_tensors(model.declared),
        "builtIn": model.declared.inputs[0].kind if model.declared is not None and model.declared.built_in else None,
        "notes": notes_of(model),
        "ephemeral": model.request.ephemeral,
        "replacement": _replacement(model),
        "events": [msgspec.to_builtins(event) for event in model.reports.latest()],
        "errors": [each._asdict() for each in model.reports.errors.latest()],
    }


def _replacement(model: ModelVersion) -> dict[str, Any] | None:
    """Return the archive that is replacing this one, or failed to; or the replaced one that still finishes; or None."""
    if model.replacement is not None:
        attempt = model.replacement
        message, _, traceback = attempt.error.partition("\n")
        return {
            "state": attempt.state,
            "url": attempt.url,
            "ready": attempt.ready,
            "wanted": attempt.wanted,
            "error": {"message": message, "traceback": traceback.strip("\n")} if attempt.error else None,
        }
    if model.took_over and model.replaces is not None:
        old = model.replaces
        return {"state": "finishing", "url": old.source.url, "queued": old.waiting, "running": old.running}
    return None


def _declared(model: ModelVersion) -> dict[str, Any] | None:
    """Return the inputs and the answer of a typed handler; None for any other, and until a worker is ready."""
    declared = model.declared
    if declared is None or declared.built_in:
        return None
    return {
        "inputs": [{"name": each.name, "kind": each.kind, "annotation": each.annotation} for each in declared.inputs],
        "batches": declared.batches,
        "batchSize": declared.batch_size or None,
        "streams": declared.streams,
        "output": declared.output,
    }


def notes_of(model: ModelVersion) -> list[str]:
    """Return sentences for the model's author, those on model-config.yaml and the worker's."""
    document = model.source.document
    return [*misspelt(document), *unused_devices(document, model.settings.devices), *model.notes]


def settings_of(model: ModelVersion) -> dict[str, Any]:
    """Return each setting of `model-config.yaml` by its name there, in that file's units."""
    return shown_settings(vars(model.settings) | {"workers": model.presence.least, "max_workers": model.presence.most})


def shown_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of rows, by the rows' names, as `settings_of` does."""
    return {
        row.yaml: None if values[row.name] is None else row.written.show(values[row.name])
        for row in MODEL_SETTINGS
        if row.yaml
    }


def _settings(model: ModelVersion) -> list[dict[str, Any]]:
    """Return each setting with its value, its source, and when a change takes effect while the version serves."""
    origins = dict(model.settings.origins)
    overrides, values = model.request.overrides, settings_of(model)
    if overrides.workers is not None:
        origins["workers"] = origins["max_workers"] = overrides.since.get("workers", "register")
    return [
        {
            "name": row.yaml,
            "value": values[row.yaml],
            "origin": origins.get(row.name, "default"),
            "changes": row.changes or None,
        }
        for row in MODEL_SETTINGS
        if row.yaml
    ]
