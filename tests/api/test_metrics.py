"""`/metrics` tells what was measured, and follows versions as they come and go."""

import asyncio
from pathlib import Path

from tests.api.house import House
from tests.metrics.reading import values
from tsctl.daemon.core.machine.cards import Card
from tsctl.daemon.declarations import MetricRow, Samples
from tsctl.daemon.extension import Extension, Service
from tsctl.daemon.metrics.version import OTHER, REASONS
from tsctl.daemon.server.extensions import EXTENSIONS
from tsctl.daemon.server.routes import Fields
from tsctl.daemon.workers.engine import ENDS
from tsctl.handlers.wire import Measurement

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


async def metrics_of(house: House, query: str = "") -> dict[str, float]:
    answer = await house.ask("GET", f"/metrics{query}")
    assert (answer.status, answer.headers["content-type"]) == (200, CONTENT_TYPE)
    return values(answer.body.decode())


async def test_an_empty_daemon_tells_of_its_machine(house: House) -> None:
    lines = await metrics_of(house)

    assert lines["Requests2XX{Level=Host}"] == 0
    assert lines["MemoryUsed{Level=Host}"] > 0
    assert not any("model=" in line or "model_name=" in line for line in lines)


async def test_what_a_handler_emits_comes_from_its_workers_frames(house: House) -> None:
    await house.serve("m")
    (worker,) = house.engine.workers

    worker.spec.measured([Measurement("counter", "Seen", "count", (("Level", "Model"),), 3.0)])
    worker.die()
    house.clock.advance(1.0)

    lines = await metrics_of(house)
    assert lines["Seen{Level=Model,ModelName=m,ModelVersion=1.0}"] == 3


async def test_a_version_that_leaves_keeps_its_counters_only(house: House) -> None:
    await house.serve("m")
    await house.ask("POST", "/predictions/m/1.0", b"a")
    await house.ask("DELETE", "/models/m/1.0")

    lines = await metrics_of(house)

    reasons = (*REASONS.values(), OTHER, *house.metrics.refusal_labels)
    # An extension has counters of all versions, or of those that use it: its own tests say which.
    of_extensions = {
        f"{row.name}{{model=m,version=1.0}}" for each in EXTENSIONS for row in each.metrics if row.kind == "counter"
    }
    assert {line for line in lines if "=m," in line or "=m}" in line or "_m_" in line} - of_extensions == {
        *(
            f"ts_{name}{{model_name=m,model_version={version}}}"
            for name in ("inference_requests_total", "inference_latency_microseconds", "queue_latency_microseconds")
            for version in ("1.0", "default")
        ),
        "tsctl_batches_total{model=m,reason=full,version=1.0}",
        "tsctl_isolated_batches_total{model=m,version=1.0}",
        "tsctl_isolated_failures_total{model=m,version=1.0}",
        "tsctl_requests_total{code=200,model=m,version=1.0}",
        *(f"tsctl_requests_judged_total{{model=m,verdict={verdict},version=1.0}}" for verdict in ("bad", "good")),
        "tsctl_requests_retried_total{model=m,version=1.0}",
        "tsctl_request_bytes_total{model=m,version=1.0}",
        "tsctl_answer_bytes_total{model=m,version=1.0}",
        "tsctl_worker_starts_total{model=m,version=1.0}",
        *(f"tsctl_worker_exits_total{{how={how},model=m,version=1.0}}" for how in ENDS),
        *(f"tsctl_requests_refused_total{{model=m,reason={why},version=1.0}}" for why in reasons),
    }


async def test_head_tells_the_length_and_no_more(house: House) -> None:
    peer = house.send("HEAD", "/metrics?name[]=Requests2XX")
    while not house.exchanges[-1].done:  # noqa: ASYNC110 - it takes a few turns of the loop
        await asyncio.sleep(0)

    head, _, body = bytes(peer.transport.written).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n") and CONTENT_TYPE.encode() in head
    assert b"content-length: 0" not in head
    assert body == b""


async def test_gpus_are_shown_where_there_are_some(tmp_path: Path) -> None:
    house = House(tmp_path, gpus=[Card(index=3, uuid="GPU-a", name="H100", total=2**32, used=2**30, busy=37.0)])
    asked = "?name[]=GPUUtilization&name[]=GPUMemoryUsed&name[]=tsctl_gpu_memory_total_bytes"
    lines = await metrics_of(house, asked)

    assert lines == {
        "GPUUtilization{DeviceId=0,Level=Host}": 37,
        "GPUMemoryUsed{DeviceId=0,Level=Host}": 1024,
        "tsctl_gpu_memory_total_bytes{gpu=0,name=H100,uuid=GPU-a}": 2**32,
    }


def test_each_metric_that_must_be_asked_for_is_shown_where_its_own_name_is() -> None:
    class Rows(Extension):
        metrics = tuple(MetricRow(name, "gauge", "", (), asked=name != "open") for name in ("open", "one", "other"))

    class Mixed(Service):
        extension = Rows()

        def samples(self) -> Samples:
            return [[((), 1.0)]] * 3

    fields = Fields([Mixed()])

    shown = [[each.name for each in fields.families(asked)] for asked in ((), ("one",))]
    assert shown == [["open"], ["open", "one"]]
