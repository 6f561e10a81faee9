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

    bench.registrar.factory.following = (("", metrics), ("", cpus))

    await bench.register(bench.mar())

    assert [worker.spec.told for worker in bench.engine.workers] == [{"metrics": [], "cpus": [2]}]


async def test_and_anew_where_a_version_is_built_anew_by_itself(bench: StubDaemon) -> None:
    model = await bench.register(bench.mar())
    bench.registrar.factory.following = (("", lambda made: made.pool.tell_workers(cpus=[1])),)

    await bench.registrar.renew(model, "the same archive")

    assert [worker.spec.told for worker in bench.engine.workers] == [{}, {"cpus": [1]}]


async def test_a_service_that_needs_a_setting_follows_a_version_from_when_that_has_it(bench: StubDaemon) -> None:
    heard: list[float] = []
    bench.registrar.factory.following = (("client_timeout", lambda made: heard.append(made.settings.client_timeout)),)

    model = await bench.register(bench.mar())
    before = list(heard)
    for seconds in (1.0, 2.0, 0.0):
        model.change(model.settings.changed({"client_timeout": seconds}, "set"))

    assert (before, heard) == ([], [1.0, 2.0, 0.0])


async def test_a_service_hears_of_a_version_made_changed_tried_again_and_about_to_replace(bench: StubDaemon) -> None:
    heard: list[tuple[str, bool]] = []
    loading = bench.registrar.live.loading
    bench.registrar.factory.following = (("", lambda model: heard.append((model.version, model in loading))),)

    model = await bench.register(bench.mar())
    model.change(model.settings.changed({"client_timeout": 1.0}, "set"))
    model.retry()
    before = list(heard)
    await bench.registrar.renew(model, "the same archive")

    assert (before, heard[len(before) :]) == ([("1.0", False)] * 3, [("1.0", False), ("1.0", True)])


def test_a_worker_is_told_further_fields_of_its_load() -> None:
    assert load_of(make_spec(told={"optimize": ["none"]})).optimize == ["none"]
    assert load_of(make_spec()).optimize is None
