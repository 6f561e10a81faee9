"""What a list of models makes of those of the last run; the starts are in `registrations/starting.txt`."""

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.kit.daemon import StubDaemon, until
from tsctl.daemon.core.errors import NoReadyWorker
from tsctl.daemon.models.persistence.snapshot import SnapshotEntry
from tsctl.daemon.models.persistence.startup import Listing, Startup, StartupPlan, parse_listings, plan
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


def decision(
    restore: Sequence[SnapshotEntry],
    load: Sequence[Listing] = (),
    renew: Sequence[SnapshotEntry] = (),
    forget: Sequence[SnapshotEntry] = (),
) -> StartupPlan:
    return StartupPlan([*restore], [*load], [*renew], [*forget])


@pytest.mark.parametrize(
    ("listings", "stale", "expected"),
    [
        pytest.param(None, [], decision([BY_HAND, BY_LIST]), id="without a list everything comes back"),
        pytest.param([Listing("list.mar")], [], decision([BY_HAND, BY_LIST]), id="what the list names comes back"),
        pytest.param(
            [Listing("store/list.mar")], [], decision([BY_HAND, BY_LIST]), id="places are compared, not spellings"
        ),
        pytest.param([], [], decision([BY_HAND], forget=[BY_LIST]), id="what it no longer names is forgotten"),
        pytest.param(
            [Listing("list.mar")],
            [BY_LIST],
            decision([BY_HAND], [Listing("list.mar")], renew=[BY_LIST]),
            id="an archive written since is loaded anew",
        ),
        pytest.param(
            [Listing("list.mar", "n")],
            [],
            decision([BY_HAND], [Listing("list.mar", "n")], forget=[BY_LIST]),
            id="under another name it is another model",
        ),
        pytest.param(
            [Listing("hand.mar")],
            [],
            decision([BY_HAND], forget=[BY_LIST]),
            id="what was registered by hand is not loaded twice",
        ),
        pytest.param(
            [Listing("hand.mar", "m")],
            [],
            decision([BY_HAND], forget=[BY_LIST]),
            id="under the name that it has already it is the same model",
        ),
        pytest.param(
            [Listing("new.mar")],
            [BY_HAND],
            decision([BY_HAND], [Listing("new.mar")], forget=[BY_LIST]),
            id="what was registered by hand comes back though its archive changed",
        ),
    ],
)
def test_plan(listings: list[Listing] | None, stale: list[SnapshotEntry], expected: StartupPlan) -> None:
    decided = plan(
        [BY_HAND, BY_LIST],
        listings,
        place=lambda url: url.removeprefix("store/"),
        fresh=lambda entry: entry not in stale,
    )

    assert decided == expected


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
