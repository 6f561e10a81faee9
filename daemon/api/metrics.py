"""`/metrics`: all metrics in Prometheus' text format, or in that of OpenMetrics for a client that asks for it.

Every method is answered, as by TorchServe. `?name[]=A&name[]=B` selects families or samples.
"""

import asyncio
import itertools
from collections.abc import Callable, Collection, Coroutine, Iterable
from typing import Any
from urllib.parse import parse_qsl

from tsctl.daemon.api import gauges
from tsctl.daemon.config.config import Config
from tsctl.daemon.config.metrics_file import models_metrics
from tsctl.daemon.core.errors import ResourceNotFound
from tsctl.daemon.core.machine.gpu import Gpus
from tsctl.daemon.core.machine.host import HostMonitor
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import Response
from tsctl.daemon.http.router import Route
from tsctl.daemon.metrics import families
from tsctl.daemon.metrics.exposition import CONTENT_TYPE, OPEN_CONTENT_TYPE, MetricFamily, texts, wants_open
from tsctl.daemon.metrics.families import emitted
from tsctl.daemon.metrics.metrics import Metrics
from tsctl.daemon.metrics.torchserve.selection import Selection, shown
from tsctl.daemon.models.registry import Registry


def selection_of(config: Config) -> Selection:
    """Return the operator's choice among TorchServe's metrics."""
    file = config.metrics_file
    return Selection(
        config.metrics_mode,
        None if file is None else {each.name: each.dimensions for each in file.ts_metrics},
        models_metrics(file, config.model_metrics_auto_detect),
        None if file is None else {each.name: each.kind for each in (*file.ts_metrics, *file.model_metrics)},
        {each.name: each.dimensions for each in config.model_metrics},
        machine=not config.disable_system_metrics,
    )


def metrics_routes(
    registry: Registry,
    metrics: Metrics,
    host: HostMonitor,
    gpus: Gpus,
    selection: Selection | None = None,
    further: Callable[[], Iterable[MetricFamily]] = tuple,
    named: Callable[[Collection[str]], Iterable[MetricFamily]] = lambda names: (),
) -> dict[str, Route]:
    """Return the route.

    Args:
        selection: the operator's choice of TorchServe's metrics, by default all.
        further: returns the families of extensions.
        named: returns those that are shown only where a client asks for some of these names.
    """
    chosen = selection or Selection()

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
            gauges.load_times(registry),
            gauges.gauges(registry),
            gauges.processes(registry),
            further(),
            named(names) if names else (),
            families.machine(host.read() if chosen.machine else {}),
            families.gpus(found),
            families.ours(metrics),
            families.loop(metrics),
            families.servers(metrics),
            gauges.events(metrics.events),
            emitted(metrics, chosen.model_labels),
        )
        pieces = []
        for text in texts(shown(told, chosen), names, openly=openly, as_torchserve=chosen.as_torchserve):
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
