"""What a list of models makes of those of the last run; the starts are in `registrations/starting.txt`."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from tests.kit.daemon import StubDaemon, until
from tests.kit.said import said_in
from tsctl.daemon.core.errors import NoReadyWorker
from tsctl.daemon.models.persistence.snapshot import SnapshotEntry
from tsctl.daemon.models.persistence.startup import Listing, Startup, parse_listings, plan
from tsctl.daemon.models.registrar import Registration


@pytest.mark.parametrize(
    ("models", "listings"),
    [
        pytest.param(["m.mar"], [Listing("m.mar")], id="an archive"),
        pytest.param(["n=m.mar"], [Listing("m.mar", "n")], id="an archive with the model's name"),
        pytest.param(["ALL"], [Listing("a.mar"), Listing("b")], id="ALL is the store"),
        pytest.param(["b", "all"], [Listing("b"), Listing("a.mar")], id="each archive once"),
        pytest.param(["n = m.mar", "k=m.mar"], [Listing("m.mar", "n"), Listing("m.mar", "k")], id="under two names"),
        pytest.param([], [], id="none"),
    ],
)
def test_a_list_of_models(models: list[str], listings: list[Listing]) -> None:
    assert parse_listings(models, ["a.mar", "b"]) == listings


def make_entry(url: str, version: str = "1.0", *, listed: bool = False, name: str | None = None) -> SnapshotEntry:
    return SnapshotEntry(
        name=name or "m", version=version, request=Registration(url=url, model_name=name), listed=listed
    )


BY_HAND, BY_LIST = make_entry("hand.mar", "1"), make_entry("list.mar", "2", listed=True)


@said_in("plans.txt")
def test_plan(given: str) -> str:
    told = json.loads(given)
    decided = plan(
        [BY_HAND, BY_LIST],
        None if told["list"] is None else parse_listings(told["list"], []),
        place=lambda url: url.removeprefix("store/"),
        fresh=lambda entry: entry.request.url not in told.get("written", []),
    )
    assert {*map(id, [*decided.restore, *decided.renew, *decided.forget])} <= {id(BY_HAND), id(BY_LIST)}
    loaded = [f"{each.name}={each.url}" if each.name else each.url for each in decided.load]
    others = [[each.request.url for each in some] for some in (decided.restore, decided.renew, decided.forget)]
    return "restore {}, renew {}, forget {}; load {}".format(*map(json.dumps, [*others, loaded]))


async def test_what_is_listed_or_was_registered_is_expected_until_it_is_registered_or_fails(
    tmp_path: Path, bench: StubDaemon
) -> None:
    await bench.register(bench.mar("kept"))
    (bench.store / "broken.mar").write_bytes(b"no archive")
    again = StubDaemon(tmp_path, models=f"{bench.mar('listed')},known=broken.mar")
    for kept in again.models_dir.iterdir():
        shutil.rmtree(kept)
    startup = Startup(again.config, again.registry, again.registrar)

    startup.restore()

    assert [again.registry.expects(name) for name in ("kept", "listed", "known", "other")] == [True, True, True, False]
    loading = asyncio.ensure_future(startup.load())
    await until(lambda: not again.registry.expects("kept"))
    assert not startup.done, "the others are still unpacked"
    await loading
    assert startup.done
    assert not any(again.registry.expects(name) for name in ("kept", "listed", "known"))
    assert {model.name for model in again.registry} == {"kept", "listed"}
    with pytest.raises(NoReadyWorker, match='"known" could not be loaded at the start'):
        again.registry.find("known")
