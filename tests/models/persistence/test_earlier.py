"""The state of a model before its latest change is kept: which commands are a change, and what a rollback needs."""

from dataclasses import replace
from typing import Any

import pytest

from tests.kit.archives import model_files, write_mar
from tests.kit.daemon import StubDaemon
from tests.models.test_registrar import BROKEN
from tsctl.daemon.core.errors import WorkersFailed
from tsctl.daemon.models.change import change_settings
from tsctl.daemon.models.persistence.snapshot import Snapshot, SnapshotEntry
from tsctl.daemon.models.persistence.snapshot_file import earlier_after, one_change
from tsctl.daemon.models.registrar import Registration, no_progress
from tsctl.daemon.models.routing.route import Route
from tsctl.daemon.models.settings import Overrides


def entry(version: str = "1.0", name: str = "m", *, default: bool = True, **asked: Any) -> SnapshotEntry:
    request = Registration(url=f"{name}-{version}.mar", overrides=Overrides(**asked))
    return SnapshotEntry(name=name, version=version, request=request, default=default, unpacked=version[0] * 64)


def kept(before: list[SnapshotEntry], after: list[SnapshotEntry], change: str = "") -> Snapshot:
    saved, now = Snapshot(models=tuple(before)), Snapshot(models=tuple(after))
    return replace(now, earlier=earlier_after(saved, now, change=change, time=1.0))


ONE, TWO = entry("1.0"), entry("2.0", default=False)


@pytest.mark.parametrize(
    ("after", "is_change"),
    [
        pytest.param([ONE], False, id="nothing"),
        pytest.param([entry(workers=4, max_workers=4)], False, id="a scaled version"),
        pytest.param([replace(ONE, request=replace(ONE.request, held=True))], False, id="an unloaded version"),
        pytest.param([replace(ONE, notes=("a note",), chosen=True)], False, id="a note of a worker"),
        pytest.param([entry(batch_size=8)], True, id="a setting"),
        pytest.param([ONE, TWO], True, id="another version"),
        pytest.param([replace(ONE, unpacked="9" * 64)], True, id="another archive"),
        pytest.param([replace(TWO, default=True)], True, id="another version instead"),
        pytest.param([], True, id="no version any more"),
        pytest.param([ONE, entry(name="other")], False, id="another model"),
    ],
)
def test_a_change_of_versions_settings_or_default_keeps_the_state_before(
    after: list[SnapshotEntry], is_change: bool
) -> None:
    assert [each.versions for each in kept([ONE], after).earlier] == ([(ONE,)] if is_change else [])


def test_another_default_version_is_a_change() -> None:
    after = [replace(ONE, default=False), replace(TWO, default=True)]

    assert kept([ONE, TWO], after).earlier[0].versions == (ONE, TWO)


def test_another_route_is_a_change_and_all_routes_of_a_reserved_model_are_one() -> None:
    shared, other = Route(weights=(("1.0", 9.0), ("2.0", 1.0))), Route(weights=(("1.0", 5.0), ("2.0", 5.0)))
    plain = Snapshot(models=(ONE, TWO))
    begun = replace(plain, routes={"m": shared})

    (routed,) = earlier_after(
        replace(plain, routes={"m": shared}), replace(plain, routes={"m": other}), change="", time=1.0
    )
    first = earlier_after(plain, begun, change="", time=1.0)
    second = earlier_after(
        replace(begun, earlier=first), replace(begun, routes={"m": other}), change="", time=2.0,
        reserved=frozenset({"m"}),
    )  # fmt: skip

    assert routed.route == shared
    assert first == second and first[0].route is None


def test_the_latest_change_wins_and_commands_with_one_token_are_one_change() -> None:
    first = kept([entry(batch_size=1)], [entry(batch_size=2)], change="a")
    second = earlier_after(first, Snapshot(models=(entry(batch_size=3),)), change="a", time=2.0)
    third = earlier_after(replace(first, earlier=second), Snapshot(models=(entry(batch_size=4),)), change="b", time=3.0)

    assert second == first.earlier
    assert third[0].versions == (entry(batch_size=2),) and third[0].time == 3.0


def test_the_directories_before_are_kept_as_long_as_the_model_is_registered() -> None:
    assert kept([ONE], [TWO]).directories == {"1" * 64, "2" * 64}
    assert kept([ONE, entry(name="other")], [entry("3.0", "other")]).directories == {"1" * 64, "3" * 64}
    assert kept([ONE], []).directories == frozenset()


async def test_the_archive_before_is_served_again_though_its_file_is_gone(bench: StubDaemon) -> None:
    old = await bench.register(bench.mar())
    digest = old.source.directory.name
    write_mar(bench.store / "m-1.0.mar", model_files() | {"more": b"."})
    with one_change("token"):
        await bench.registrar.register(Registration(url="m-1.0.mar"), replace=True)
    (bench.store / "m-1.0.mar").unlink()

    again = await bench.restart()  # the state before is on the disk
    (earlier,) = again.registrar.ledger.memory.earlier
    assert (earlier.change, earlier.versions[0].unpacked) == ("token", digest)
    request = Registration(url="m-1.0.mar", sha256=digest, local_paths=True)
    back = await again.registrar.register(request, replace=True)

    assert back.source.directory.name == digest and not (back.source.directory / "more").exists()
    assert again.registrar.ledger.memory.earlier[0].versions[0].unpacked != digest  # a second rollback returns


async def test_setting_is_a_change_and_scaling_is_none(bench: StubDaemon) -> None:
    model = await bench.register(bench.mar(), workers=1)
    await bench.registrar.scale(model, 2, 3, synchronous=True, progress=no_progress)
    assert len(bench.registrar.ledger.memory.earlier) == 0

    change_settings(model, {"batch_size": 8})
    await bench.registrar.ledger.remember(model)

    (earlier,) = bench.registrar.ledger.memory.earlier
    assert earlier.versions[0].request.overrides.said == {"workers": 2, "max_workers": 3}


async def test_a_replacement_that_fails_leaves_the_state_before_the_latest_change(bench: StubDaemon) -> None:
    await bench.register(bench.mar())
    bench.engine.load_failure = BROKEN
    write_mar(bench.store / "m-1.0.mar", model_files() | {"more": b"."})

    with pytest.raises(WorkersFailed, match="bad weights"):
        await bench.registrar.register(Registration(url="m-1.0.mar", overrides=Overrides(workers=1)), replace=True)

    assert bench.registrar.ledger.memory.earlier == () and bench.unpacked == 1
