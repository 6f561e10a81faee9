"""`/metrics` tells what was measured, and follows versions as they come and go."""

import asyncio
from pathlib import Path

from tests.api.house import House
from tests.metrics.reading import values
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.core.machine.cards import Card
from tsctl.daemon.declarations import MetricRow, Samples
from tsctl.daemon.extension import Extension, Service
from tsctl.daemon.server.fields import Fields
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

    fields = Fields(FakeClock(), 0.0)
    fields.services = [Mixed()]

    shown = [[each.name for each in fields.families(asked)] for asked in ((), ("one",))]
    assert shown == [["open"], ["open", "one"]]
