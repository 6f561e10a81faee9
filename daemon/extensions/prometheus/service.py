"""`/metrics`: all metrics in Prometheus' text format, or in that of OpenMetrics for a client that asks for it.

Every method is answered, as by TorchServe. `?name[]=A&name[]=B` selects families or samples.
"""

import asyncio
from collections.abc import Collection, Coroutine, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any
from urllib.parse import parse_qsl

from tsctl.daemon.api.openapi import STRING, UNKNOWN_CALLER, answer, operation
from tsctl.daemon.core.errors import ResourceNotFound
from tsctl.daemon.core.machine.cards import Card
from tsctl.daemon.declarations import Operations
from tsctl.daemon.extension import Kernel, Service
from tsctl.daemon.extensions.exposition.host import HostMonitor
from tsctl.daemon.extensions.exposition.text import (
    ALL,
    CONTENT_TYPE,
    OPEN_CONTENT_TYPE,
    MetricFamily,
    Selection,
    family,
    texts,
    wants_open,
)
from tsctl.daemon.extensions.prometheus import families
from tsctl.daemon.extensions.prometheus.gauges import load_times, processes, version_gauges
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import Response
from tsctl.daemon.http.router import Audience, Route

OPERATIONS: Operations = {
    "/metrics": {
        "get": operation(
            "metrics",
            [],
            {"200": answer("`name[]` selects metrics.", STRING, "text/plain", "application/openmetrics-text")},
            UNKNOWN_CALLER | {"400": "The request is malformed."},
        )
    }
}


class PrometheusService(Service):
    """The route of one daemon."""

    def __init__(self, kernel: Kernel) -> None:
        self._observation, self._registry, self._fields = kernel.observation, kernel.registry, kernel.fields
        self._gpus, self._host = kernel.gpus, HostMonitor()

    def routes(self, audience: Audience) -> Mapping[str, Route]:
        return {"metrics": self._route} if audience in (Audience.CLIENTS, Audience.SCRAPERS) else {}

    def _route(self, exchange: Exchange, path: list[str]) -> Coroutine[Any, Any, None]:
        if path:
            raise ResourceNotFound
        return self._show(exchange)

    async def _show(self, exchange: Exchange) -> None:
        query = exchange.request.target.partition("?")[2]
        names = [value for name, value in parse_qsl(query, keep_blank_values=True) if name == "name[]"]
        openly = wants_open(exchange.request.header("accept"))
        chosen: Selection = self._observation.selection or ALL
        made = self._families(names, chosen, await self._gpus.read() if chosen.machine else {})
        pieces = []
        for text in texts(chosen.shown(made), names, openly=openly, written=chosen.written):
            pieces.append(text)
            # The metrics of 100 versions take 8 ms (measured at d82013d7): let predictions run in between.
            await asyncio.sleep(0)
        exchange.respond(
            Response(200, b"".join(pieces), (("Content-Type", OPEN_CONTENT_TYPE if openly else CONTENT_TYPE),))
        )

    def _families(
        self, names: Collection[str], chosen: Selection, cards: Mapping[int, Card]
    ) -> Iterator[MetricFamily]:  # fmt: skip
        metrics = self._observation.metrics
        return chain(
            families.answered(metrics),
            families.clients(metrics),
            families.sums(metrics),
            families.last_batches(metrics),
            load_times(self._registry),
            version_gauges(self._registry),
            processes(self._registry),
            families_of(self._fields.services, names),
            families.machine(self._host.read() if chosen.machine else {}),
            families.gpus(cards),
            families.ours(metrics),
            families.loop(metrics),
            families.servers(metrics),
            families.events(metrics.events),
            families.emitted(metrics, chosen.model_labels),
        )


def families_of(services: Sequence[Service], asked: Collection[str] = ()) -> Iterator[MetricFamily]:
    """Yield the samples of services as they are now, with those shown only to clients that ask for these names."""
    for service in services:
        rows = service.extension.metrics
        if all(row.asked and row.name not in asked for row in rows):
            continue  # without the work of its samples
        for row, samples in zip(rows, service.samples(), strict=False):  # none of one that has none
            if row.asked and row.name not in asked:
                continue
            values = [(dict(zip(row.labels, labels, strict=True)), value) for labels, value in samples]
            yield family(row.name, row.kind, row.help, values)
