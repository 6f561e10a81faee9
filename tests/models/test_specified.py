"""Services may change the configuration of a version's workers, or refuse the version, when it is built."""

import re
from dataclasses import replace

import pytest

from tests.kit.daemon import StubDaemon
from tests.kit.stub import StubEngine
from tsctl.daemon.core.errors import InvalidModel
from tsctl.daemon.extension import Extension, Service
from tsctl.daemon.models.request import Registration
from tsctl.daemon.models.settings import ModelSettings, Overrides
from tsctl.daemon.server.kernel import connect
from tsctl.daemon.workers.engine import WorkerSpec


class Specifying(Service):
    """Gives all workers an engine of its own, and adds `word` to that engine's facts.

    Args:
        refused: the model that cannot be served.
        needs: as of its extension.
    """

    def __init__(self, word: str, engine: StubEngine, refused: str = "", needs: str = "") -> None:
        self.extension = Extension()
        self.extension.needs = needs
        self._word, self._engine, self._refused = word, engine, refused

    def specify(self, settings: ModelSettings, spec: WorkerSpec) -> WorkerSpec:
        if spec.model_name == self._refused:
            raise InvalidModel(f"{settings.workers} workers of {self._refused} cannot be.")
        return replace(spec, engine=self._engine, own=f"{spec.own or ''}{self._word}")


async def test_each_service_completes_the_configuration_and_its_engine_starts_the_workers(bench: StubDaemon) -> None:
    other = StubEngine(bench.engine.clock)
    connect(bench.registrar, [Specifying(name, other) for name in "ab"])

    await bench.register(bench.mar())

    assert ([each.spec.own for each in other.workers], bench.engine.workers) == (["ab"], [])


async def test_a_service_is_not_asked_for_a_version_without_the_setting_that_it_needs(bench: StubDaemon) -> None:
    connect(bench.registrar, [Specifying("a", StubEngine(bench.engine.clock), "m", "client_timeout")])

    await bench.register(bench.mar())
    asked = Registration(url=bench.mar(version="2.0"), overrides=Overrides(workers=1, client_timeout=1.0))
    with pytest.raises(InvalidModel):
        await bench.registrar.register(asked)

    assert bench.names == ["m/1.0"]


async def test_a_version_that_a_service_refuses_is_not_registered(bench: StubDaemon) -> None:
    connect(bench.registrar, [Specifying("a", bench.engine, refused="m")])

    with pytest.raises(InvalidModel, match=re.escape("1 workers of m cannot be.")):
        await bench.register(bench.mar())

    assert (bench.names, bench.engine.workers) == ([], [])
