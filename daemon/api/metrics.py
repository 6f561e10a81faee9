"""`/metrics`: all metrics in Prometheus' text format.

Every method is answered, as by TorchServe. `?name[]=A&name[]=B` selects families or samples.
"""

import asyncio
import itertools
from collections.abc import Coroutine, Iterator
from typing import Any
from urllib.parse import parse_qsl

from prometheus_client import Metric

from daemon.api.management.describe import FIRST_WORKER_ID
from daemon.core.errors import ResourceNotFound
from daemon.http.exchange import Exchange
from daemon.http.messages import Response
from daemon.http.router import Route
from daemon.metrics import families
from daemon.metrics.exposition import CONTENT_TYPE, family, texts
from daemon.metrics.gpu import Gpus
from daemon.metrics.host import HostMonitor
from daemon.metrics.merged import emitted
from daemon.metrics.metrics import Metrics
from daemon.models.registry import Registry
from daemon.models.version import ModelVersion


def metrics_routes(registry: Registry, metrics: Metrics, host: HostMonitor, gpus: Gpus) -> dict[str, Route]:
    """Return the route."""

    async def show(exchange: Exchange) -> None:
        query = exchange.request.target.partition("?")[2]
        names = [value for name, value in parse_qsl(query) if name == "name[]"]
        found = await gpus.read()
        told = itertools.chain(
            families.answered(metrics),
            families.sums(metrics),
            families.last_batches(metrics),
            _pools(registry),
            _learned(registry),
            families.machine(host.read()),
            families.gpus(found),
            families.ours(metrics),
            emitted(metrics),
        )
        pieces = []
        for text in texts(told, names):
            pieces.append(text)
            # The metrics of 100 versions take 40 ms (tests/lab/benchmarks/metrics.py): let predictions run in between.
            await asyncio.sleep(0)
        exchange.respond(Response(200, b"".join(pieces), (("Content-Type", CONTENT_TYPE),)))

    def route(exchange: Exchange, path: list[str]) -> Coroutine[Any, Any, None]:
        if path:
            raise ResourceNotFound
        return show(exchange)

    return {"metrics": route}


def _pools(registry: Registry) -> Iterator[Metric]:
    """Yield the present queues and workers of each version; unregistered versions have no samples."""
    models = [({"model": model.name, "version": model.version}, model) for model in registry]
    load_times = [
        ({"WorkerName": f"W-{FIRST_WORKER_ID + index}-{model.name}_{model.version}"} | families.HOST, worker.load_time)
        for _, model in models
        for index, worker in enumerate(model.pool.workers)
        if worker.load_time
    ]
    yield family(
        "WorkerLoadTime", "gauge", "Time from a worker's start until its model was loaded, milliseconds",
        [(labels, seconds * 1e3) for labels, seconds in load_times],
    )  # fmt: skip
    yield family("tsctl_queue_jobs", "gauge", "Requests that wait", [(la, m.waiting) for la, m in models])
    yield family("tsctl_queue_bytes", "gauge", "Bytes that wait", [(la, m.queue.bytes) for la, m in models])
    yield family("tsctl_running_jobs", "gauge", "Requests that run", [(la, m.running) for la, m in models])
    yield family("tsctl_workers_ready", "gauge", "Workers with the model", [(la, m.pool.ready) for la, m in models])
    oldest = [(labels, _longest_wait(m)) for labels, m in models]
    yield family("tsctl_queue_oldest_seconds", "gauge", "Age of the request that has waited the longest", oldest)
    backing_off = [(labels, m.pool.pausing) for labels, m in models]
    yield family(
        "tsctl_workers_pausing", "gauge", "Workers that ended too early, and are started again later", backing_off
    )
    given_up = [(labels, m.pool.given_up) for labels, m in models]
    yield family("tsctl_workers_given_up", "gauge", "Workers that failed, and are not started again", given_up)
    yield family(
        "tsctl_workers_wanted", "gauge", "Workers that there should be", [(la, m.pool.wanted) for la, m in models]
    )


def _longest_wait(model: ModelVersion) -> float:
    now, queue = model.clock.now(), model.queue
    return max((now - job.queued for job in (*queue.oldest(), *queue.parked)), default=0.0)


def _learned(registry: Registry) -> Iterator[Metric]:
    """Yield the present estimates that batching uses: a batch of n takes a + c·n (Nexus, SOSP '19)."""
    models = [({"model": model.name, "version": model.version}, model) for model in registry]
    known = [(labels, model.traffic.times) for labels, model in models if model.traffic.times.known]
    yield family(
        "tsctl_learned_batch_seconds", "gauge", "What a batch takes whatever its size, as learned",
        [(labels, times.per_batch) for labels, times in known],
    )  # fmt: skip
    yield family(
        "tsctl_learned_request_seconds", "gauge", "What each request adds to a batch, as learned",
        [(labels, times.per_job) for labels, times in known],
    )  # fmt: skip
    yield family(
        "tsctl_arrivals_per_second", "gauge", "Requests a second, lately",
        [(labels, model.traffic.rate_at(model.clock.now())) for labels, model in models],
    )  # fmt: skip
