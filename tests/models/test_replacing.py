"""A replacement serves when it is ready, and not before; nobody is refused, and a failed one leaves nothing."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from daemon.errors import BeingReplaced, Conflict, InvalidModel, NotRemembered, Stopping, VersionNotFound, WorkersFailed
from daemon.models import retiring, snapshot
from daemon.models.model import Model, ModelState
from daemon.models.modelconfig import Wishes
from daemon.models.registration import Request, no_progress
from daemon.models.setting import change_settings
from daemon.workers.engine import LoadFailure
from daemon.workers.state import State
from tests.build import model_files, write_files, write_mar
from tests.models.bench import NEVER, Bench, run, until

BROKEN = LoadFailure("ValueError: bad weights", "Traceback (most recent call last): …")


def other(bench: Bench, name: str = "m", version: str = "1.0", content: bytes = b"other") -> str:
    """Put another archive of a version into the store."""
    write_mar(bench.store / "other.mar", model_files(name, version) | {"weights": content})
    return "other.mar"


async def replace(bench: Bench, url: str, *, synchronous: bool = True, **wishes: Any) -> Model:
    request = Request(url=url, wishes=Wishes(**wishes), synchronous=synchronous)
    return await bench.registration.register(request, replace=True)


async def begin(bench: Bench, url: str, **wishes: Any) -> "asyncio.Future[Model]":
    """Start a replacement whose workers stay on their way."""
    bench.engine.load_time = NEVER
    before = len(bench.engine.workers)
    loading = asyncio.ensure_future(replace(bench, url, **wishes))
    await until(lambda: len(bench.engine.workers) > before)
    return loading


def ready(bench: Bench) -> None:
    """Let the youngest worker come up."""
    bench.engine.workers[-1]._load()


def test_the_old_one_serves_until_the_new_one_is_ready(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        old = await bench.register(bench.mar())
        loading = await begin(bench, other(bench))
        old.submit(bench.client.job("meanwhile"))
        await until(lambda: "meanwhile" in bench.client.answered)
        assert bench.registry.find("m") is old and old.being_replaced and old.state is ModelState.READY

        ready(bench)
        new = await loading

        assert bench.registry.find("m") is new and new.state is ModelState.READY and new.took_over
        await until(lambda: old.pool.empty and bench.unpacked == 1)
        assert (new.source.directory / "weights").read_bytes() == b"other"
        assert bench.remembered["m/1.0"].unpacked == new.source.directory.name
        assert bench.client.statuses == {"meanwhile": 200}

    run(tmp_path, scenario)


def test_what_the_old_one_has_accepted_it_answers_however_long_that_takes(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        bench.engine.batch_time = lambda size: NEVER
        old = await bench.register(bench.mar())
        old.submit(bench.client.job("running"))
        await until(lambda: old.dispatcher.running == 1)
        old.submit(bench.client.job("waiting"))

        new = await replace(bench, other(bench))
        assert new.replaces is old and old.running + old.waiting == 2 and bench.unpacked == 2
        bench.engine.batch_time = lambda size: 0.0
        bench.engine.workers[0]._finish(0.0)
        await until(lambda: new.replaces is None)

        assert bench.client.statuses == {"running": 200, "waiting": 200}
        assert old.pool.empty and bench.unpacked == 1 and bench.registry.find("m") is new

    run(tmp_path, scenario, grace="0")


def test_a_worker_of_the_old_one_that_dies_now_is_replaced_for_those_that_wait(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        bench.engine.batch_time = lambda size: NEVER
        old = await bench.register(bench.mar())
        old.submit(bench.client.job("running"))
        await until(lambda: old.dispatcher.running == 1)
        worker = bench.engine.workers[-1]
        worker.answered = True
        old.submit(bench.client.job("waiting"))
        new = await replace(bench, other(bench))

        bench.engine.batch_time = lambda size: 0.0
        worker.die()
        await until(lambda: new.replaces is None)

        assert bench.client.statuses == {"running": 200, "waiting": 200}

    run(tmp_path, scenario)


def test_one_that_cannot_be_loaded_leaves_the_old_one_and_nothing_else(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        old = await bench.register(bench.mar())
        before = bench.snapshot.read_bytes()
        bench.engine.load_failure = BROKEN

        with pytest.raises(WorkersFailed, match=r"(?s)ValueError: bad weights.*Traceback"):
            await replace(bench, other(bench), workers=2)

        assert bench.registry.find("m") is old and old.state is ModelState.READY and not old.being_replaced
        assert bench.unpacked == 1 and bench.snapshot.read_bytes() == before
        assert old.replacement is not None and "bad weights" in old.replacement.error
        assert [worker.state for worker in bench.engine.workers] == [State.READY, State.EXITED, State.EXITED]
        bench.engine.load_failure = None
        assert (await replace(bench, other(bench))).took_over

    run(tmp_path, scenario)


def test_an_archive_that_is_refused_leaves_the_old_one(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        old = await bench.register(bench.mar())
        write_mar(bench.store / "bad.mar", model_files(handler="missing.py"))

        with pytest.raises(InvalidModel):
            await replace(bench, "bad.mar")

        assert bench.registry.find("m") is old and not old.being_replaced and bench.unpacked == 1

    run(tmp_path, scenario)


def test_without_waiting_the_failure_is_kept_where_it_was_asked_for(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        old = await bench.register(bench.mar())
        bench.engine.load_failure = BROKEN

        new = await replace(bench, other(bench), synchronous=False)

        assert bench.registry.find("m") is old and old.being_replaced
        await until(lambda: not old.being_replaced and new.pool.empty and bench.unpacked == 1)
        assert old.replacement is not None and "bad weights" in old.replacement.error

    run(tmp_path, scenario)


def test_without_waiting_it_takes_over_when_it_is_ready_and_is_remembered(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.register(bench.mar())

        new = await replace(bench, other(bench), synchronous=False)

        await until(lambda: bench.registry.find("m") is new)
        await until(lambda: bench.remembered["m/1.0"].unpacked == new.source.directory.name)

    run(tmp_path, scenario)


def test_without_workers_there_is_nothing_to_wait_for_and_it_is_remembered_at_once(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.register(bench.mar(), workers=0)

        new = await replace(bench, other(bench), synchronous=False, workers=0)

        assert bench.registry.find("m") is new and new.took_over
        assert bench.remembered["m/1.0"].unpacked == new.source.directory.name

    run(tmp_path, scenario)


def test_what_is_not_registered_is_registered(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        model = await replace(bench, bench.mar(), workers=1)

        assert bench.names == ["m/1.0"] and not model.took_over and [*bench.remembered] == ["m/1.0"]

    run(tmp_path, scenario)


def test_one_that_has_failed_can_be_replaced_too_and_stays_listed_until_then(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        bench.engine.load_failure = BROKEN
        failed = await bench.register(bench.mar(), synchronous=False)
        await until(lambda: failed.state is ModelState.FAILED)

        with pytest.raises(WorkersFailed):
            await replace(bench, other(bench), workers=1)
        assert bench.registry.find("m") is failed and [*bench.remembered] == ["m/1.0"]
        bench.engine.load_failure = None
        new = await replace(bench, other(bench), workers=1)

        assert bench.registry.find("m") is new and new.state is ModelState.READY

    run(tmp_path, scenario)


def test_the_same_path_with_other_content_and_a_directory_can_be_replaced(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        url = bench.mar()
        await bench.register(url)
        write_mar(bench.store / url, model_files() | {"weights": b"new"})
        new = await replace(bench, url)
        assert (new.source.directory / "weights").read_bytes() == b"new"

        directory = write_files(bench.store / "m", model_files())
        assert (await replace(bench, "m")).source.directory == directory
        await until(lambda: bench.unpacked == 0)
        assert (await replace(bench, "m")).source.directory == directory
        await until(lambda: bench.registry.find("m").replaces is None)
        assert (directory / "handler.py").is_file()

    run(tmp_path, scenario)


def test_the_same_content_again_keeps_its_directory(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.register(bench.mar())

        new = await replace(bench, bench.mar())

        await until(lambda: new.replaces is None)
        assert (new.source.directory / "handler.py").is_file() and bench.unpacked == 1

    run(tmp_path, scenario)


def test_the_default_and_the_order_of_versions_stay(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        for version in ("1.0", "2.0"):
            await bench.register(bench.mar(version=version))
        await bench.registration.set_default("m", "2.0")

        for version in ("1.0", "2.0"):
            await replace(bench, other(bench, version=version, content=version.encode()))

        assert bench.names == ["m/1.0", "m/2.0"] and bench.registry.find("m").version == "2.0"
        assert [entry.chosen for entry in bench.remembered.values()] == [False, True]

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("config", "wishes", "workers"),
    [
        pytest.param(b"", {}, 3, id="as many as before where nobody says"),
        pytest.param(b"", {"workers": 2}, 2, id="as many as the registration says"),
        pytest.param(b"minWorkers: 4", {}, 4, id="as many as the archive says"),
    ],
)
def test_settings_are_those_of_a_registration_but_for_the_number_of_workers(
    config: bytes, wishes: dict[str, Any], workers: int, tmp_path: Path
) -> None:
    async def scenario(bench: Bench) -> None:
        request = Request(url=bench.mar(), wishes=Wishes(workers=1, batch_size=4))
        old = await bench.registration.register(request)
        await bench.registration.scale(old, 3, 3, synchronous=True, progress=no_progress)
        change_settings(old, {"max_delay": 0.5})
        write_files(bench.store / "m", model_files(configFile="c.yaml") | {"c.yaml": config})

        new = await replace(bench, "m", **wishes)

        assert (new.settings.batch_size, new.settings.max_delay) == (1, 0.1)
        assert (new.pool.ready, new.min_workers) == (workers, workers)
        again = await bench.restart()
        assert again.registry.find("m").pool.wanted == workers

    run(tmp_path, scenario)


def test_while_it_is_being_replaced_nothing_else_changes_it(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        old = await bench.register(bench.mar())
        loading = await begin(bench, other(bench))
        registration = bench.registration

        with pytest.raises(BeingReplaced, match=r"is being replaced\. Try again when that is done"):
            await replace(bench, bench.mar())
        with pytest.raises(BeingReplaced):
            await bench.register(bench.mar())
        with pytest.raises(BeingReplaced):
            await registration.unregister("m", None)
        with pytest.raises(BeingReplaced):
            await registration.scale(old, 2, 2, synchronous=False, progress=no_progress)
        with pytest.raises(BeingReplaced) as caught:
            change_settings(old, {"batch_size": 2})
        await registration.set_default("m", "1.0")

        assert caught.value.status == 409 and bench.unpacked == 2
        ready(bench)
        assert await loading is bench.registry.find("m")

    run(tmp_path, scenario)


def test_one_that_is_still_being_registered_is_not_replaced(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        bench.engine.load_time = NEVER
        registering = asyncio.ensure_future(bench.register(bench.mar()))
        await until(lambda: len(bench.engine.workers) == 1)

        with pytest.raises(Conflict, match=r"is still being registered\. Try again"):
            await replace(bench, other(bench))

        ready(bench)
        assert await registering is bench.registry.find("m") and bench.unpacked == 1

    run(tmp_path, scenario)


def test_one_that_has_lost_its_place_meanwhile_is_not_brought_back(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        old = await bench.register(bench.mar())
        loading = await begin(bench, other(bench))
        bench.registry.discard(old)  # as a list of models does that names another archive

        ready(bench)
        with pytest.raises(VersionNotFound, match="was unregistered while it was being replaced"):
            await loading

        assert bench.names == [] and bench.unpacked == 1  # the old one's, which is not ours to remove

    run(tmp_path, scenario)


def test_a_stop_ends_old_and_new_and_the_old_one_is_restored(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        old = await bench.register(bench.mar())
        loading = await begin(bench, other(bench))

        await bench.registration.stop(grace=1.0)

        with pytest.raises(Stopping):
            await loading
        assert {worker.state for worker in bench.engine.workers} == {State.EXITED} and bench.unpacked == 1
        with pytest.raises(Stopping):
            await replace(bench, other(bench))
        again = await bench.restart()
        assert again.registry.find("m").source.directory == old.source.directory

    run(tmp_path, scenario)


def test_a_stop_gives_what_was_replaced_its_grace_time_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retiring, "LEAVE_TIME", 0.01)

    async def scenario(bench: Bench) -> None:
        bench.engine.batch_time = lambda size: NEVER
        old = await bench.register(bench.mar())
        old.submit(bench.client.job("running"))
        await until(lambda: old.dispatcher.running == 1)
        old.submit(bench.client.job("waiting"))
        new = await replace(bench, other(bench))

        await bench.registration.stop(grace=0.0)

        assert bench.client.statuses == {"waiting": 503, "running": 503}
        assert old.pool.empty and new.pool.empty and bench.unpacked == 1

    run(tmp_path, scenario)


def test_a_kill_before_it_is_remembered_brings_the_old_one_back_and_after_it_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    async def scenario(bench: Bench) -> None:
        old = await bench.register(bench.mar())
        with monkeypatch.context() as patched:
            patched.setattr(snapshot, "write_snapshot", full)
            with pytest.raises(NotRemembered):
                await replace(bench, other(bench))
        new = bench.registry.find("m")
        await until(lambda: new.replaces is None)

        killed = await bench.restart()
        assert killed.registry.find("m").source.directory == old.source.directory and killed.unpacked == 1

        await replace(killed, other(killed))
        again = await killed.restart()
        assert again.registry.find("m").source.directory == new.source.directory

    run(tmp_path, scenario)


def test_both_count_as_one_version_in_the_metrics(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        bench.engine.batch_time = lambda size: NEVER
        old = await bench.register(bench.mar())
        old.submit(bench.client.job("running"))
        await until(lambda: old.dispatcher.running == 1)
        new = await replace(bench, other(bench))

        new.submit(bench.client.job("new"))
        bench.engine.workers[0]._finish(1.0)
        await until(lambda: new.replaces is None)

        (version,) = bench.registration._metrics.versions
        assert version is new.metrics and version.named.requests + version.unnamed.requests == 2
        assert sum(version.latency.counts) == 1

    run(tmp_path, scenario)
