"""TorchServe's files of a configuration: the line of a request, and nothing where none is wanted."""

import json
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from tests.kit.daemon import StubDaemon
from tests.kit.said import said_in
from tsctl.daemon.config.config import resolve
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.events.events import Events
from tsctl.daemon.extensions.torchserve_logs.logs import TorchServeLogsService, access_line
from tsctl.daemon.http.messages import Request
from tsctl.daemon.server.observation import Observation


@said_in("lines.txt")
def test_a_request_is_torchserves_line(given: str) -> str:
    return access_line(Request(headers=[], **json.loads(given)), 200, 0.0039)


def service_of(
    bench: StubDaemon, place: str = "log_location", observation: Observation | None = None
) -> TorchServeLogsService:
    """Return the service of a daemon that writes TorchServe's files to its root: its snapshots to `config` there."""
    config, clock = resolve({place: str(bench.root)} if place else {}, {}), FakeClock()
    parts: Any = SimpleNamespace(
        config=config, clock=clock, observation=observation or Observation(Events(), clock, clock.soon), gpus=None,
        registry=bench.registry, registrar=bench.registrar,
    )  # fmt: skip
    return TorchServeLogsService(parts)


@pytest.mark.parametrize(
    ("place", "wanted"),
    [("", (False, False, False)), ("log_location", (False, True, True)), ("metrics_location", (True, False, True))],
)
async def test_each_place_wants_its_own_part_and_nothing_else_is_called(
    bench: StubDaemon, place: str, wanted: tuple[bool, ...]
) -> None:
    clock = FakeClock()
    observation = Observation(Events(), clock, clock.soon)
    service = service_of(bench, place, observation)
    logging.getLogger("tsctl.daemon.server").warning("the last words")
    service.close()

    log = bench.root / "ts_log.log"
    assert log.exists() is (place == "log_location") and (not log.exists() or "the last words" in log.read_text())
    called = (observation.metrics.log, observation.requests.copy, bench.registrar.factory.logs.copy_of("m", "1.0"))
    assert tuple(each is not None for each in called) == wanted


@pytest.mark.parametrize(("left", "written"), [([], ["shutdown"]), (["m"], [])], ids=["all", "all but one"])
async def test_a_run_that_has_settled_its_models_is_written_at_its_end_though_nothing_was_saved(
    bench: StubDaemon, left: list[str], written: list[str]
) -> None:
    for name in ("m", "n"):
        bench.registry.expect(name)
    service = service_of(bench)
    service.begin()
    for name in {"m", "n"}.difference(left):
        bench.registry.settle(name)

    await service.settle(replaced=False)
    service.close()

    folder = bench.root / "config"
    assert [each.stem.rpartition("-")[2] for each in folder.iterdir()] == written if written else not folder.exists()


async def test_the_load_times_of_workers_are_written_when_their_registration_is_answered(bench: StubDaemon) -> None:
    service = service_of(bench, "metrics_location")
    bench.engine.load_time = 0.001

    await bench.register(bench.mar(), synchronous=True)
    service.close()

    assert (bench.root / "ts_metrics.log").read_text().count("WorkerLoadTime") == 1
