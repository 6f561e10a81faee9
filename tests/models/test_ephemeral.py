"""An upgrade hands an ephemeral version on; what else becomes of one is in `registrations/ephemeral.txt`."""

from pathlib import Path
from unittest.mock import patch

from tests.kit.daemon import StubDaemon, until
from tsctl.daemon.lifecycle.upgrade.messages import Inheritance, decode, encode
from tsctl.daemon.lifecycle.upgrade.new import handed_entries
from tsctl.daemon.lifecycle.upgrade.old import expected
from tsctl.daemon.models.change import change_settings
from tsctl.daemon.models.persistence.startup import Startup
from tsctl.daemon.models.registrar import Registrar
from tsctl.daemon.models.version import ModelVersion


async def serve(bench: StubDaemon, url: str) -> ModelVersion:
    return await bench.register(url, ephemeral=True, owner="mine")


async def test_an_upgrade_hands_it_on_with_its_files_and_settings(tmp_path: Path, bench: StubDaemon) -> None:
    await bench.register(bench.mar("m"))
    model = await serve(bench, bench.mar("e"))
    change_settings(model, {"batch_size": 4})
    models = expected(bench.registry, bench.registrar.ledger.hand_over())
    told = decode(encode(Inheritance([], 1, 2, (3, 4), models)).strip(), Inheritance)

    with patch.object(Registrar, "clean"):  # which only a cold start calls
        new = StubDaemon(tmp_path)
    startup = Startup(new.config, new.registry, new.registrar, replacing=True, handed=handed_entries(told.models))
    startup.restore()
    await startup.load()
    await bench.registrar.stop(0.0)

    assert new.names == ["e/1.0", "m/1.0"]
    served = new.registry.find("e")
    assert (served.settings.batch_size, served.request.owner, served.request.ephemeral) == (4, "mine", True)
    assert served.source.directory.is_dir() and new.registry.find("m").source.directory.is_dir()
    await until(lambda: served.pool.ready == 1)
    await new.registrar.unregister("e", None, "mine")
    assert not served.source.directory.is_dir() and [*new.remembered] == ["m/1.0"]


async def test_after_an_upgrade_that_failed_its_files_go_with_it(bench: StubDaemon) -> None:
    await serve(bench, bench.mar())
    bench.registrar.ledger.hand_over()

    bench.registrar.ledger.take_back()
    await bench.registrar.unregister("m", None)

    assert bench.unpacked == 0
