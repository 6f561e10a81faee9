"""`/metrics` tells what was measured, and follows versions as they come and go."""

import os
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families as parsed

from tests.api.house import House
from tests.metrics.reading import values
from tsctl.daemon.core.machine.cards import Card
from tsctl.daemon.declarations import MetricRow, Samples
from tsctl.daemon.extension import Extension, Service
from tsctl.daemon.extensions.prometheus import PrometheusExtension
from tsctl.daemon.extensions.prometheus.service import PrometheusService, families_of
from tsctl.daemon.http.router import Audience
from tsctl.daemon.models.version import ModelVersion
from tsctl.handlers.wire import Measurement

M = "model=m,version=1.0"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


async def metrics_of(house: House, query: str = "") -> dict[str, float]:
    answer = await house.ask("GET", f"/metrics{query}")
    assert (answer.status, answer.headers["content-type"]) == (200, CONTENT_TYPE)
    return values(answer.body.decode())


async def test_clients_and_scrapers_get_metrics_and_managers_do_not(house: House) -> None:
    service = house.service(PrometheusService)

    assert [each for each in Audience if service.routes(each)] == [Audience.CLIENTS, Audience.SCRAPERS]


async def test_what_a_handler_emits_comes_from_its_workers_frames(house: House) -> None:
    await house.serve("m")
    (worker,) = house.engine.workers

    worker.spec.measured([Measurement("counter", "Seen", "count", (("Level", "Model"),), 3.0)])
    worker.die()
    house.clock.advance(1.0)

    lines = await metrics_of(house)
    assert lines["Seen{Level=Model,ModelName=m,ModelVersion=1.0}"] == 3


def test_each_metric_that_must_be_asked_for_is_shown_where_its_own_name_is() -> None:
    class Rows(Extension):
        metrics = tuple(MetricRow(name, "gauge", "", (), asked=name != "open") for name in ("open", "one", "other"))

    class Mixed(Service):
        extension = Rows()

        def samples(self) -> Samples:
            return [[((), 1.0)]] * 3

    class Costly(Extension):
        metrics = (MetricRow("costly", "gauge", "", (), asked=True),)

    class Unasked(Service):
        extension = Costly()

        def samples(self) -> Samples:
            raise AssertionError

    shown = [[each.name for each in families_of([Mixed(), Unasked()], asked)] for asked in ((), ("one",))]
    assert shown == [["open"], ["open", "one"]]


async def ask_in_batches(house: House) -> ModelVersion:
    """Serve a version, and send it batches of one and two requests, of which it learns."""
    house.engine.batch_time = lambda size: 0.008 + 0.0004 * size
    model = await house.serve("m", config="batchSize: 2\nbatching: fixed")
    for count in (1, 1, 2, 1, 2):
        for _ in range(count):
            house.send("POST", "/predictions/m")
        house.clock.settle()
        house.clock.advance(0.5)
    return model


async def test_what_was_learned_of_batches_is_shown(house: House) -> None:
    model = await ask_in_batches(house)

    lines = await metrics_of(house)

    assert lines[f"tsctl_learned_batch_seconds{{{M}}}"] == pytest.approx(0.008)
    assert lines[f"tsctl_learned_request_seconds{{{M}}}"] == pytest.approx(0.0004)
    rate = model.traffic.rate_at(house.clock.now())
    assert lines[f"tsctl_arrivals_per_second{{{M}}}"] == pytest.approx(rate, abs=0.001)


async def test_each_row_is_shown_with_its_labels_once_there_was_one_of_everything(tmp_path: Path) -> None:
    house = House(tmp_path, gpus=[Card(index=0, uuid="GPU-a", name="H100", total=4, used=1, busy=1.0)])
    metrics, (worker,) = (await ask_in_batches(house)).metrics, house.engine.workers
    metrics.expirations["queue"] = metrics.emitted.dropped["name"] = 1
    metrics.emitted.stages["inference"].observe(0.0)
    house.metrics.servers["gRPC"] = True, 0
    house.metrics.answered_to("mobile", 200)
    worker.pid, worker.load_time, worker.gpu_memory = os.getpid(), 1.5, {3: 5}
    rows = {row.name: {*row.labels} for row in PrometheusExtension.metrics}

    text = (await house.ask("GET", "/metrics")).body.decode()

    # The parser's counters end with `_total`, as TorchServe's do not.
    found = {sample.name: sample.labels.keys() for each in parsed(text) for sample in each.samples}
    labels = {re.sub("_(bucket|count|sum)$", "", name): {*each} - {"le"} for name, each in found.items()}
    assert {name: labels.get(name, labels.get(f"{name}_total")) for name in rows} == rows
    told = values(text)
    assert told["WorkerLoadTime{Level=Host,WorkerName=W-9000-m_1.0}"] == 1500
    assert told[f"tsctl_worker_gpu_memory_bytes{{gpu=3,{M},worker=0}}"] == 5
    cpu, memory = (told[f"tsctl_worker_{name}{{{M},worker=0}}"] for name in ("cpu_seconds_total", "memory_bytes"))
    assert 0 < cpu < 1e6 < memory
