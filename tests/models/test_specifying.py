"""Services may change what a version's workers are started with."""

from dataclasses import replace
from pathlib import Path

from tests.kit.build import make_spec
from tests.kit.daemon import StubDaemon
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.engine import WorkerSpec
from tsctl.daemon.workers.processes.spawn import load_of


async def test_each_service_sees_the_version_and_what_those_before_it_have_changed(tmp_path: Path) -> None:
    bench = StubDaemon(tmp_path)
    seen: list[tuple[str, bool]] = []

    def no_retry(model: ModelVersion, spec: WorkerSpec) -> WorkerSpec:
        seen.append((model.name, spec.retry is False))
        return replace(spec, retry=False)

    bench.registrar.factory.specify = (no_retry, no_retry)

    await bench.register(bench.mar())

    assert seen == [("m", False), ("m", True)]
    assert [worker.spec.retry for worker in bench.engine.workers] == [False]


async def test_a_version_that_is_built_anew_by_itself_is_specified_anew(tmp_path: Path) -> None:
    bench = StubDaemon(tmp_path)
    model = await bench.register(bench.mar())
    bench.registrar.factory.specify = (lambda model, spec: replace(spec, isolate=True),)

    await bench.registrar.renew(model, "the same archive")

    assert [worker.spec.isolate for worker in bench.engine.workers] == [None, True]


def test_a_worker_is_told_further_fields_of_its_load() -> None:
    assert load_of(make_spec(told={"optimize": ["none"]})).optimize == ["none"]
    assert load_of(make_spec()).optimize is None
