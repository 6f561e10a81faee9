"""`/metrics`: all metrics in Prometheus' text format, or in that of OpenMetrics for a client that asks for it.

Every method is answered, as by TorchServe. `?name[]=A&name[]=B` selects families or samples.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator
from typing import Any
from urllib.parse import parse_qsl

from tsctl.daemon.api.management.describe import FIRST_WORKER_ID
from tsctl.daemon.core.errors import ResourceNotFound
from tsctl.daemon.core.machine.gpu import Gpus
from tsctl.daemon.core.machine.host import HostMonitor
from tsctl.daemon.core.machine.processes import process_facts
from tsctl.daemon.events.events import KINDS
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import Response
from tsctl.daemon.http.router import Route
from tsctl.daemon.metrics import families
from tsctl.daemon.metrics.exposition import (
    CONTENT_TYPE,
    OPEN_CONTENT_TYPE,
    Labels,
    MetricFamily,
    Selection,
    family,
    texts,
    wants_open,
)
from tsctl.daemon.metrics.families import HOST, emitted
from tsctl.daemon.metrics.metrics import Metrics
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.engine import local_pid


def _longest_wait(model: ModelVersion) -> float:
    now, queue = model.clock.now(), model.queue
    return max((now - job.queued for job in (*queue.oldest(), *queue.parked)), default=0.0)


# Each a gauge with the labels `model` and `version`.
GAUGES: tuple[tuple[str, str, Callable[[ModelVersion], float]], ...] = (
    ("tsctl_queue_jobs", "Requests that wait", lambda model: model.waiting),
    ("tsctl_queue_bytes", "Bytes that wait", lambda model: model.queue.bytes),
    ("tsctl_queue_oldest_seconds", "Age of the request that has waited the longest", _longest_wait),
    ("tsctl_running_jobs", "Requests that run", lambda model: model.running),
    ("tsctl_workers_wanted", "Workers that there should be", lambda model: model.pool.wanted),
    ("tsctl_workers_ready", "Workers with the model", lambda model: model.pool.ready),
    (
        "tsctl_workers_pausing",
        "Workers that ended too early, and are started again later",
        lambda model: model.pool.pausing,
    ),
    ("tsctl_workers_given_up", "Workers that failed, and are not started again", lambda model: model.pool.given_up),
    ("tsctl_arrivals_per_second", "Requests a second, lately", lambda model: model.traffic.rate_at(model.clock.now())),
)
# Once known: a batch of n takes a + c·n (Nexus, SOSP '19).
LEARNED: tuple[tuple[str, str, Callable[[ModelVersion], float]], ...] = (
    (
        "tsctl_learned_batch_seconds",
        "What a batch takes whatever its size, as learned",
        lambda model: model.traffic.times.per_batch,
    ),
    (
        "tsctl_learned_request_seconds",
        "What each request adds to a batch, as learned",
        lambda model: model.traffic.times.per_job,
    ),
)
# Each with the label `worker` besides: its place, from 0, so that a restart makes no new series.
MEMORY = ("tsctl_worker_memory_bytes", "gauge", "Memory of a worker that is in RAM")
GPU_MEMORY = ("tsctl_worker_gpu_memory_bytes", "gauge", "Memory that a worker holds on a GPU, as it tells")
PROCESSOR = ("tsctl_worker_cpu_seconds_total", "counter", "Processor time of a worker's process")


def version_gauges(registry: Registry) -> Iterator[MetricFamily]:
    """Yield the present state of each version; unregistered ones have no samples."""
    models = [(_labels(model), model) for model in registry]
    for name, text, value in GAUGES:
        yield family(name, "gauge", text, [(labels, value(model)) for labels, model in models])
    known = [(labels, model) for labels, model in models if model.traffic.times.known]
    for name, text, value in LEARNED:
        yield family(name, "gauge", text, [(labels, value(model)) for labels, model in known])


def events(counts: Counter[str] | None) -> Iterator[MetricFamily]:
    """Yield the daemon's events by kind, with a zero for those that have not come, so that a rate sees the first."""
    values = [] if counts is None else [({"kind": kind, "level": KINDS[kind].level}, counts[kind]) for kind in KINDS]
    yield family("tsctl_events_total", "counter", "Events of the daemon by kind", values)


def load_times(registry: Registry) -> Iterator[MetricFamily]:
    """Yield TorchServe's gauge of each worker's start."""
    found = [
        ({"WorkerName": f"W-{FIRST_WORKER_ID + index}-{model.name}_{model.version}"} | HOST, worker.load_time)
        for model in registry
        for index, worker in enumerate(model.pool.workers)
        if worker.load_time
    ]
    yield family(
        "WorkerLoadTime", "gauge", "Time from a worker's start until its model was loaded, milliseconds",
        [(labels, seconds * 1e3) for labels, seconds in found],
    )  # fmt: skip


def processes(registry: Registry) -> Iterator[MetricFamily]:
    """Yield what the process of each worker takes."""
    found = [
        (_labels(model) | {"worker": str(place)}, process_facts(local_pid(slot.worker)))
        for model in registry
        for place, slot in enumerate(model.pool.slots)
        if slot.worker is not None
    ]
    yield family(*MEMORY, [(labels, facts.memory) for labels, facts in found if facts.memory])
    yield family(*PROCESSOR, [(labels, facts.cpu) for labels, facts in found if facts.memory])
    on_gpus = [
        (_labels(model) | {"worker": str(place), "gpu": str(gpu)}, size)
        for model in registry
        for place, slot in enumerate(model.pool.slots)
        if slot.worker is not None
        for gpu, size in slot.worker.gpu_memory.items()
    ]
    if on_gpus:
        yield family(*GPU_MEMORY, on_gpus)


def _labels(model: ModelVersion) -> Labels:
    return {"model": model.name, "version": model.version}


def metrics_routes(
    registry: Registry,
    metrics: Metrics,
    host: HostMonitor,
    gpus: Gpus,
    chosen: Selection,
    further: Callable[[Collection[str]], Iterable[MetricFamily]] = lambda names: (),
) -> dict[str, Route]:
    """Return the route.

    Args:
        chosen: the operator's choice.
        further: returns the families of extensions, for a client that asks for these names.
    """

    async def show(exchange: Exchange) -> None:
        query = exchange.request.target.partition("?")[2]
        names = [value for name, value in parse_qsl(query, keep_blank_values=True) if name == "name[]"]
        openly = wants_open(exchange.request.header("accept"))
        found = await gpus.read() if chosen.machine else {}
        told = itertools.chain(
            families.answered(metrics),
            families.clients(metrics),
            families.sums(metrics),
            families.last_batches(metrics),
            load_times(registry),
            version_gauges(registry),
            processes(registry),
            further(names),
            families.machine(host.read() if chosen.machine else {}),
            families.gpus(found),
            families.ours(metrics),
            families.loop(metrics),
            families.servers(metrics),
            events(metrics.events),
            emitted(metrics, chosen.model_labels),
        )
        pieces = []
        for text in texts(chosen.shown(told), names, openly=openly, written=chosen.written):
            pieces.append(text)
            # The metrics of 100 versions take 8 ms (measured at d82013d7): let predictions run in between.
            await asyncio.sleep(0)
        exchange.respond(
            Response(200, b"".join(pieces), (("Content-Type", OPEN_CONTENT_TYPE if openly else CONTENT_TYPE),))
        )

    def route(exchange: Exchange, path: list[str]) -> Coroutine[Any, Any, None]:
        if path:
            raise ResourceNotFound
        return show(exchange)

    return {"metrics": route}
