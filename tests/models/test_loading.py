"""An operator's commands: load a version now, or unload it and keep it so."""

import pytest

from tests.kit.daemon import StubDaemon
from tsctl.daemon.core.errors import NoReadyWorker
from tsctl.daemon.models.persistence.restore import Restoring
from tsctl.daemon.models.persistence.startup import Startup
from tsctl.daemon.models.registrar import no_progress


async def test_a_model_that_is_always_loaded_can_be_unloaded_and_keeps_its_number_of_workers(bench: StubDaemon) -> None:
    model = await bench.register(bench.mar(), workers=2)

    await bench.registrar.unload(model)
    assert (model.word, model.presence.least, model.pool.wanted, model.available) == ("unloaded", 2, 0, False)
    await bench.registrar.load(model, synchronous=True, progress=no_progress)

    assert model.pool.ready == 2


async def test_a_version_that_was_unloaded_stays_so_over_a_restart_until_it_is_loaded_or_scaled(
    bench: StubDaemon,
) -> None:
    model = await bench.register(bench.mar(), workers=3)
    await bench.registrar.unload(model)
    assert bench.remembered["m/1.0"].request.held

    restarted = await bench.restart()
    model = restarted.registry.find("m")
    with pytest.raises(NoReadyWorker, match="`tsctl load m` brings it back"):
        model.submit(restarted.client.job("b"))
    await restarted.registrar.scale(model, 1, 1, synchronous=True, progress=no_progress)

    assert (model.word, model.pool.ready) == ("ready", 1)
    assert not restarted.remembered["m/1.0"].request.held


async def test_a_start_that_a_bug_breaks_off_leaves_no_model_expected(
    bench: StubDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    new = StubDaemon(bench.root, models=",".join(bench.mar(name) for name in "abc"))
    startup = Startup(new.config, new.registry, new.registrar)
    startup.restore()
    assert new.registry.expected == ["a", "b", "c"]
    monkeypatch.setattr(Restoring, "load", broken)

    with pytest.raises(RuntimeError, match="a bug"):
        await startup.load()

    assert new.registry.expected == []
