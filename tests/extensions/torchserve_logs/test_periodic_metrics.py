"""The machine and the starts of workers are lines of ts_metrics.log, without a request that brings them."""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.api.house import House
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.core.machine.cards import Card, FoundCards
from tsctl.daemon.core.machine.gpu import Gpus
from tsctl.daemon.extensions.exposition.host import HostMonitor
from tsctl.daemon.extensions.torchserve_logs.metric_log import MetricLog
from tsctl.daemon.extensions.torchserve_logs.periodic_metrics import LOOK_EVERY, PeriodicMetrics
from tsctl.daemon.extensions.torchserve_logs.selection import TorchServeSelection


@contextlib.contextmanager
def written(house: House, interval: float | None = None, gpus: Sequence[Card] = ()) -> Iterator[list[str]]:
    """Yield the names and dimensions of the lines, as they come."""
    lines: list[str] = []

    def take(line: str) -> None:
        name, _, rest = line.partition(":")
        lines.append(f"{name} {rest.split('|#')[1]}")

    log = MetricLog(TorchServeSelection(), take, take)
    periodic = PeriodicMetrics(
        log, house.registry, HostMonitor(),
        Gpus(house.clock, gpus, lambda: FoundCards(gpus, "580.1")), house.clock, interval,
    )  # fmt: skip
    periodic.begin()
    yield lines
    periodic.close()


def load(place: int) -> str:
    return f"WorkerLoadTime.Milliseconds WorkerName:W-{9000 + place}-m_1.0,Level:Host"


async def test_each_worker_that_has_loaded_is_one_line(house: House) -> None:
    house.engine.load_time = 2.0
    with written(house) as lines:
        model = await house.serve("m")
        before = list(lines)
        house.clock.advance(2.0)
        house.clock.advance(LOOK_EVERY)
        soon = list(lines)
        model.scale(2, 2)
        house.clock.advance(2.0 + 2 * LOOK_EVERY)

    assert (before, soon, lines) == ([], [load(0)], [load(0), load(1)])


async def test_the_machine_is_measured_at_the_start_and_in_each_interval(house: House) -> None:
    with written(house, 60.0) as lines:
        first = len(lines)
        house.clock.advance(59.0)
        waiting = len(lines)
        house.clock.advance(2.0)

    assert "MemoryUsed.Megabytes Level:Host" in lines
    assert (first, waiting, len(lines)) == (7, 7, 14)


async def test_the_gpus_are_measured_too(house: House) -> None:
    with written(house, 60.0, [Card(index=0, uuid="GPU-a", total=4, used=1, busy=37.0)]) as lines:
        async with asyncio.timeout(30):
            await house.until(lambda: len(lines) == 10)

    assert lines[7:] == [
        "GPUUtilization.Percent Level:Host,DeviceId:0",
        "GPUMemoryUtilization.Percent Level:Host,DeviceId:0",
        "GPUMemoryUsed.Megabytes Level:Host,DeviceId:0",
    ]


async def test_without_an_interval_only_workers_are_looked_at(house: House) -> None:
    with written(house) as lines:
        house.clock.advance(200.0)

    assert lines == []


def test_an_exception_while_the_machine_is_measured_does_not_end_the_measuring() -> None:
    clock, calls = FakeClock(), 0

    def read() -> dict[str, float]:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise ValueError
        return {}

    host, gpus, log = SimpleNamespace(read=read), SimpleNamespace(told=False), SimpleNamespace()
    clock.later(0.0, PeriodicMetrics(*cast(Any, (log, [], host, gpus, clock, 7.0))).begin)
    with pytest.raises(ValueError, match=r"^$"):
        clock.advance(10.0)
    clock.advance(20.0)

    assert calls >= 3
