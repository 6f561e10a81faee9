"""The autoscaling of registered versions, with stub workers on a fake clock."""

from typing import Any

import pytest

from tests.kit.version import StubVersion
from tsctl.daemon.core.machine.cards import Card
from tsctl.daemon.core.machine.processes import AvailableMemory
from tsctl.daemon.extensions.scaling import service as resources
from tsctl.daemon.extensions.scaling.service import FRESH, ScalingService
from tsctl.daemon.models.registry import Registry

GIB = 1024**3


class StubGpus:
    """GPUs that exist only in memory.

    Args:
        free: GPU → free bytes.

    Attributes:
        reads: how often they were read.
    """

    def __init__(self, free: dict[int, int]) -> None:
        self.free = free
        self.reads = 0

    def __call__(self) -> dict[int, Card]:
        self.reads += 1
        return {gpu: Card(index=gpu, free=size) for gpu, size in self.free.items()}


class Scaled:
    """A registered version whose batches take a second, and clients that ask `rate` times a second."""

    def __init__(
        self,
        *,
        least: int = 1,
        most: int = 3,
        load_time: float = 1.0,
        gpus: "StubGpus | None" = None,
        gpu_memory: int = 0,
        **settings: Any,
    ) -> None:
        values: dict[str, Any] = {"target_queue": 0.5, "policy": "greedy", "queue_jobs": 10_000, "cores": 4} | settings
        self.version = StubVersion(workers=0, load_time=load_time, **values)
        self.model, self.clock = self.version.model, self.version.clock
        self.version.engine.gpu_memory = gpu_memory
        self.model.scale(least, most)
        self.clock.advance(load_time)
        registry = Registry()
        registry.add(self.model)
        self.autoscaling = ScalingService(registry, {}, self.clock, gpus or StubGpus({}))
        self.autoscaling.begin()

    def ask(self, rate: float, seconds: float) -> None:
        for _ in range(round(rate * seconds)):
            self.version.submit("a")
            self.clock.advance(1.0 / rate)

    @property
    def events(self) -> list[str]:
        return [f"{event.kind}: {event.text}" for event in self.model.reports.latest() if "scale" in event.kind]


@pytest.fixture(autouse=True)
def _enough_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "taken", lambda pid: 1024**3)
    monkeypatch.setattr(resources, "available", lambda: [AvailableMemory(100 * 1024**3, "this machine", 1 << 50)])


def test_a_version_gets_workers_when_requests_wait_and_loses_them_after_a_quiet_time() -> None:
    scaled = Scaled()
    scaled.ask(2.5, 40.0)

    assert scaled.model.pool.wanted == 3
    assert scaled.events[0].startswith("autoscaled: scaled from 1 to 2: predicted wait ")
    assert scaled.events[0].endswith(" > 500 ms")
    scaled.clock.advance(300.0)
    assert scaled.model.pool.wanted == 1
    assert (scaled.model.presence.least, scaled.model.presence.most) == (1, 3), "the operator's range stays"


def test_a_version_without_a_target_keeps_its_number_and_a_target_can_be_set_and_removed() -> None:
    scaled = Scaled(target_queue=0.0)
    scaled.ask(2.5, 20.0)
    assert (scaled.model.pool.wanted, scaled.autoscaling.of(scaled.model)) == (1, None)
    scaled.model.change(scaled.model.settings.changed({"target_queue": 0.5}, "set"))
    scaled.ask(2.5, 20.0)
    more = scaled.model.pool.wanted
    scaled.model.change(scaled.model.settings.changed({"target_queue": 0.0}, "set"))
    scaled.clock.advance(300.0)

    assert more > 1
    assert scaled.model.pool.wanted == more, "the number that was there stays"
    assert scaled.autoscaling.of(scaled.model) is None


def test_an_operator_narrows_the_range_and_that_holds() -> None:
    scaled = Scaled()
    scaled.ask(2.5, 40.0)
    scaled.model.scale(2, 2)
    scaled.ask(2.5, 40.0)

    assert scaled.model.pool.wanted == 2
    assert scaled.events[-1].startswith("autoscale-blocked: kept at 2 workers: predicted wait ")
    assert ", but maxWorkers is 2" in scaled.events[-1]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        pytest.param({"cores": 2}, "3 workers share 2 cores and slow each other down", id="cores"),
        pytest.param({"devices": (0, 1)}, "each of the 2 GPUs has a worker", id="GPUs"),
    ],
)
def test_a_worker_without_a_core_or_a_gpu_is_not_added(settings: dict[str, Any], reason: str) -> None:
    scaled = Scaled(**settings)
    scaled.ask(3.0, 40.0)

    assert scaled.model.pool.wanted == 2
    assert reason in scaled.events[-1]


def test_a_worker_without_memory_is_not_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "available", lambda: [AvailableMemory(512 * 1024**2, "the cgroup /pod", 1 << 50)])
    scaled = Scaled()
    scaled.ask(2.0, 20.0)

    assert scaled.model.pool.wanted == 1
    assert scaled.events[-1].endswith(", but a worker takes 1 GiB, and the cgroup /pod has 512 MiB left")


def test_workers_that_are_still_loading_need_their_memory_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "available", lambda: [AvailableMemory(2 * 1024**3, "this machine", 1 << 50)])
    scaled = Scaled(load_time=30.0)
    scaled.ask(20.0, 10.0)

    assert scaled.model.pool.wanted == 2, "there is room for one of 1.1 GiB, and none beside it"


def on_gpus(gpus: StubGpus, count: int = 2, **settings: Any) -> Scaled:
    """Return a version that may use so many GPUs, whose first worker tells of 6 GiB on GPU 0."""
    return Scaled(gpus=gpus, devices=tuple(range(count)), gpu_memory=6 * GIB, **settings)


def test_a_worker_is_not_added_before_its_gpu_has_memory() -> None:
    gpus = StubGpus({0: 60 * GIB, 1: 2 * GIB})
    scaled = on_gpus(gpus)
    scaled.ask(0.5, 60.0)
    assert gpus.reads == 0, "no worker is wanted"
    scaled.ask(3.0, 40.0)

    assert scaled.model.pool.wanted == 1
    [event] = scaled.events
    assert event.endswith(", but a worker takes 6 GiB, and GPU 1 has 2 GiB left"), "told once, however often read"
    assert 1 <= gpus.reads <= 40.0 / FRESH + 1
    gpus.free[1] = 20 * GIB
    scaled.ask(3.0, 10.0)
    assert [worker.gpu_ids for worker in scaled.model.pool.workers] == [(0,), (1,)]


def test_nothing_is_added_while_the_gpus_are_read() -> None:
    gpus = StubGpus({0: 60 * GIB, 1: 20 * GIB})
    scaled = on_gpus(gpus)
    scaled.clock.held = []
    scaled.ask(3.0, 40.0)
    waited = scaled.model.pool.wanted
    scaled.clock.release()
    scaled.ask(3.0, 3.0)

    assert (waited, scaled.model.pool.wanted) == (1, 2)
    assert [event.partition(":")[0] for event in scaled.events] == ["autoscaled"]


def test_gpus_that_tell_nothing_are_no_obstacle_and_are_asked_again_after_a_minute() -> None:
    gpus = StubGpus({})
    scaled = on_gpus(gpus, most=2)
    scaled.ask(3.0, 20.0)

    assert scaled.model.pool.wanted == 2
    assert gpus.reads == 1


def test_a_model_on_the_cpu_asks_no_gpu() -> None:
    gpus = StubGpus({0: 0})
    scaled = Scaled(gpus=gpus)
    scaled.ask(2.0, 20.0)

    assert scaled.model.pool.wanted > 1
    assert gpus.reads == 0


def test_a_wait_that_no_worker_would_shorten_adds_none() -> None:
    scaled = Scaled(policy="fixed", batch_size=8, max_delay=2.0, batch_time=0.1, target_queue=0.2)
    scaled.ask(1.0, 60.0)

    assert scaled.model.pool.wanted == 1, "requests wait beside an idle worker, for company"


def test_the_timer_ends() -> None:
    scaled = Scaled()
    scaled.autoscaling.close()
    scaled.ask(3.0, 20.0)

    assert scaled.model.pool.wanted == 1
