"""The message and the environment with which a worker begins, on GPUs."""

from typing import Any

import pytest

from tests.kit.build import make_model, make_spec
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.workers.processes.spawn import load_of, worker_environment
from tsctl.daemon.workers.stub import StubEngine

NAMES = ["2", "0", "1"]


@pytest.mark.parametrize(
    ("spec", "gpu_id", "gpus"),
    [
        pytest.param({}, None, [], id="none on the CPU"),
        pytest.param({"gpu_ids": (1,)}, 1, NAMES, id="one, among all that the daemon uses"),
        pytest.param({"gpu_ids": (1, 2), "gpus_each": 2}, 0, ["0", "1"], id="several, and no other"),
        pytest.param({"gpu_ids": (2,), "group": 1}, 0, ["1"], id="a group of processes has its own"),
    ],
)
def test_a_worker_is_told_its_gpus_by_their_names(spec: dict[str, Any], gpu_id: int | None, gpus: list[str]) -> None:
    load = load_of(make_spec(gpu_names=NAMES, **spec))

    assert (load.gpu_id, load.gpus) == (gpu_id, gpus)


def test_workers_count_gpus_as_the_daemon_does_whatever_the_operator_has_set() -> None:
    environment = worker_environment({"CUDA_DEVICE_ORDER": "FASTEST_FIRST", "TSCTL_GPUS": "1", "PATH": "/bin"}, 2)

    assert environment["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert environment["PATH"] == "/bin"
    assert "TSCTL_GPUS" not in environment


def test_workers_begin_with_a_malloc_that_keeps_memory_unless_the_operator_has_set_it() -> None:
    assert "glibc.malloc.mmap_max=0" in worker_environment({}, 2)["GLIBC_TUNABLES"]
    assert worker_environment({"GLIBC_TUNABLES": "x"}, 2)["GLIBC_TUNABLES"] == "x"


def test_a_worker_is_told_whether_it_may_run_on_the_cpu() -> None:
    clock = FakeClock()
    model = make_model(StubEngine(clock), clock, device_type="auto")

    assert load_of(model.pool.spec).device_type == "auto"
