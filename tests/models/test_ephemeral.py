"""An ephemeral version is never written down, and takes and leaves only what is its owner's."""

import asyncio
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.kit.daemon import StubDaemon, until
from tests.models.replacements import other
from tsctl.daemon.core.errors import Conflict
from tsctl.daemon.lifecycle.upgrade.messages import Inheritance, decode, encode
from tsctl.daemon.lifecycle.upgrade.new import handed_entries
from tsctl.daemon.lifecycle.upgrade.old import expected
from tsctl.daemon.models.change import change_settings
from tsctl.daemon.models.persistence.startup import Startup
from tsctl.daemon.models.registrar import Registrar, Registration
from tsctl.daemon.models.settings import Overrides
from tsctl.daemon.models.version import ModelVersion


async def serve(
    bench: StubDaemon, url: str, owner: str = "mine", *, replace: bool = False, **overrides: Any
) -> ModelVersion:
    values = {"workers": 1} | overrides
    request = Registration(url=url, overrides=Overrides(**values), ephemeral=True, owner=owner)
    return await bench.registrar.register(request, replace=replace)


async def test_it_is_never_in_the_snapshot_and_a_restart_does_not_serve_it(bench: StubDaemon) -> None:
    model = await serve(bench, bench.mar("e"))
    await bench.register(bench.mar("m"))
    change_settings(model, {"batch_size": 4})
    await bench.registrar.ledger.remember(model)
    await bench.registrar.set_default("e", "1.0")

    assert [*bench.remembered] == ["m/1.0"] and "mine" not in bench.snapshot.read_text()
    again = await bench.restart()
    assert again.names == ["m/1.0"] and again.unpacked == 1


async def test_only_an_ephemeral_version_goes_when_its_owners_process_has_ended(bench: StubDaemon) -> None:
    await serve(bench, bench.mar("e"))
    await bench.registrar.register(Registration(url=bench.mar("m"), owner="mine"))

    await bench.registrar.unregister_all("mine")

    assert bench.names == ["m/1.0"]


async def test_the_owner_does_not_unregister_what_another_has_put_there_since(bench: StubDaemon) -> None:
    await serve(bench, bench.mar())
    replaced = await bench.registrar.register(Registration(url=other(bench)), replace=True)

    with pytest.raises(Conflict, match="has been registered by another owner since; it stays registered"):
        await bench.registrar.unregister("m", "1.0", "mine")

    assert bench.registry.find("m") is replaced and [*bench.remembered] == ["m/1.0"]
    await bench.registrar.unregister("m", "1.0")


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
async def test_a_name_that_is_registered_is_not_taken(version: str, replace: bool, bench: StubDaemon) -> None:
    model = await bench.register(bench.mar())

    with pytest.raises(Conflict, match=r"already registered: version 1\.0, from m-1\.0\.mar\. Use another"):
        await serve(bench, bench.mar(version=version), "", replace=replace)

    assert [*bench.registry] == [model] and bench.unpacked == 1


@pytest.mark.parametrize(("owner", "replace"), [("mine", False), ("another", True)])
async def test_nor_is_an_ephemeral_one_of_another_owner_or_by_accident(
    owner: str, replace: bool, bench: StubDaemon
) -> None:
    model = await serve(bench, bench.mar())

    with pytest.raises(Conflict, match="Model m is already registered"):
        await serve(bench, other(bench), owner, replace=replace)

    assert [*bench.registry] == [model]


async def test_a_name_that_is_still_being_restored_is_not_taken_either(tmp_path: Path, bench: StubDaemon) -> None:
    await bench.register(bench.mar())
    for path in bench.models_dir.iterdir():
        path.rename(tmp_path / "lost")
    again = StubDaemon(tmp_path)
    Startup(again.config, again.registry, again.registrar).restore()
    assert again.names == []

    with pytest.raises(Conflict, match="Model m is already registered, and is being restored"):
        await serve(again, again.mar())


async def test_the_owner_replaces_it_and_keeps_its_settings(bench: StubDaemon) -> None:
    change_settings(await serve(bench, bench.mar()), {"batch_size": 4})

    new = await serve(bench, other(bench), replace=True)

    assert (new.settings.batch_size, new.request.ephemeral, new.took_over) == (4, True, True)
    assert bench.remembered == {}


async def test_an_operator_replaces_it_by_one_that_stays(bench: StubDaemon) -> None:
    await serve(bench, bench.mar())

    new = await bench.registrar.register(Registration(url=other(bench)), replace=True)

    assert not new.request.ephemeral and [*bench.remembered] == ["m/1.0"]


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


async def test_while_it_loads_its_name_is_taken(bench: StubDaemon) -> None:
    loading = asyncio.ensure_future(serve(bench, bench.mar()))
    await until(lambda: bool(bench.names))
    with pytest.raises(Conflict):
        await serve(bench, other(bench))
    await loading

    assert bench.names == ["m/1.0"] and bench.remembered == {}
