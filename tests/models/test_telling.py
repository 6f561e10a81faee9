"""A service may have a version's workers told more than their settings say."""

from tests.kit.build import make_spec
from tests.kit.daemon import StubDaemon
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.processes.spawn import load_of


async def test_what_services_say_of_a_version_that_was_made_is_told_to_its_first_worker(bench: StubDaemon) -> None:
    def metrics(model: ModelVersion) -> None:
        model.pool.tell_workers(metrics=[], cpus=[1])

    def cpus(model: ModelVersion) -> None:
        model.pool.tell_workers(cpus=[2])

    bench.registrar.factory.attached = (("", metrics), ("", cpus))

    await bench.register(bench.mar())

    assert [worker.spec.told for worker in bench.engine.workers] == [{"metrics": [], "cpus": [2]}]


async def test_and_anew_where_a_version_is_built_anew_by_itself(bench: StubDaemon) -> None:
    model = await bench.register(bench.mar())
    bench.registrar.factory.attached = (("", lambda made: made.pool.tell_workers(cpus=[1])),)

    await bench.registrar.renew(model, "the same archive")

    assert [worker.spec.told for worker in bench.engine.workers] == [{}, {"cpus": [1]}]


async def test_a_service_that_needs_a_setting_hears_of_a_version_once_that_has_it(bench: StubDaemon) -> None:
    heard: list[str] = []
    bench.registrar.factory.attached = (("client_timeout", lambda made: heard.append(made.version)),)

    model = await bench.register(bench.mar())
    before = list(heard)
    for seconds in (1.0, 2.0):
        model.change(model.settings.changed({"client_timeout": seconds}, "set"))

    assert (before, heard) == ([], ["1.0"])


def test_a_worker_is_told_further_fields_of_its_load() -> None:
    assert load_of(make_spec(told={"optimize": ["none"]})).optimize == ["none"]
    assert load_of(make_spec()).optimize is None
