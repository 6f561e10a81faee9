"""The present state of each version and of its workers, as families; unregistered versions have no samples."""

from collections import defaultdict
from collections.abc import Iterator

from tsctl.daemon.api.management.describe import FIRST_WORKER_ID
from tsctl.daemon.core.machine.processes import process_facts
from tsctl.daemon.extensions.exposition.text import Labels, MetricFamily
from tsctl.daemon.extensions.prometheus.families import HOST, numbers
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.engine import local_pid


def version_gauges(registry: Registry) -> Iterator[MetricFamily]:
    rows = defaultdict[str, list[tuple[Labels, float]]](list)
    for model in registry:
        labels = _labels(model)
        for name, value in (_state(model) | _learned(model)).items():
            rows[name].append((labels, value))
    for name, values in rows.items():
        yield numbers(name, values)


def _state(model: ModelVersion) -> dict[str, float]:
    queue, pool, now = model.queue, model.pool, model.clock.now()
    return {
        "tsctl_queue_jobs": model.waiting,
        "tsctl_queue_bytes": queue.bytes,
        "tsctl_queue_oldest_seconds": max((now - job.queued for job in queue.oldest()), default=0.0),
        "tsctl_running_jobs": model.running,
        "tsctl_workers_wanted": pool.wanted,
        "tsctl_workers_ready": pool.ready,
        "tsctl_workers_pausing": pool.pausing,
        "tsctl_workers_given_up": pool.given_up,
        "tsctl_arrivals_per_second": model.traffic.rate_at(now),
    }


def _learned(model: ModelVersion) -> dict[str, float]:
    """Return once it is known what a batch of n takes: a + c·n (Nexus, SOSP '19)."""
    times = model.traffic.times
    if not times.known:
        return {}
    return {"tsctl_learned_batch_seconds": times.per_batch, "tsctl_learned_request_seconds": times.per_job}


def load_times(registry: Registry) -> Iterator[MetricFamily]:
    """Yield TorchServe's gauge of each worker's start."""
    found = [
        ({"WorkerName": f"W-{FIRST_WORKER_ID + index}-{model.name}_{model.version}"} | HOST, worker.load_time)
        for model in registry
        for index, worker in enumerate(model.pool.workers)
        if worker.load_time
    ]
    yield numbers("WorkerLoadTime", [(labels, seconds * 1e3) for labels, seconds in found])


def processes(registry: Registry) -> Iterator[MetricFamily]:
    """Yield what the process of each worker takes, by its place, from 0: a restart makes no new series."""
    found = [
        (_labels(model) | {"worker": str(place)}, process_facts(local_pid(slot.worker)))
        for model in registry
        for place, slot in enumerate(model.pool.slots)
        if slot.worker is not None
    ]
    yield numbers("tsctl_worker_memory_bytes", [(labels, facts.memory) for labels, facts in found if facts.memory])
    yield numbers("tsctl_worker_cpu_seconds_total", [(labels, facts.cpu) for labels, facts in found if facts.memory])
    on_gpus = [
        (_labels(model) | {"worker": str(place), "gpu": str(gpu)}, size)
        for model in registry
        for place, slot in enumerate(model.pool.slots)
        if slot.worker is not None
        for gpu, size in slot.worker.gpu_memory.items()
    ]
    yield numbers("tsctl_worker_gpu_memory_bytes", on_gpus)


def _labels(model: ModelVersion) -> Labels:
    return {"model": model.name, "version": model.version}
