"""The snapshot has a part for each extension: none is lost, and none keeps the daemon from serving."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.kit.daemon import StubDaemon
from tests.kit.services import NotedDaemon
from tsctl.daemon.models.persistence import snapshot
from tsctl.daemon.models.persistence.ledger import KeptParts
from tsctl.daemon.models.settings import Overrides


def parts_in(bench: StubDaemon) -> Any:
    return json.loads(bench.snapshot.read_bytes())["extensions"]


def told(bench: StubDaemon) -> list[str]:
    return [event.text for event in bench.registrar.events.after(0) if event.kind == "part-unused"]


async def left_by(bench: NotedDaemon, part: Any) -> None:
    """Leave a snapshot with one model, and with a part of the extension `noted`."""
    bench.service.kept = part
    await bench.register(bench.mar())


async def test_a_service_takes_up_its_part_before_any_version_is_registered(tmp_path: Path) -> None:
    bench = NotedDaemon(tmp_path)
    await left_by(bench, {"a": [1]})

    again = await bench.restart()

    assert again.service.restored == [({"a": [1]}, [])]
    assert again.names == ["m/1.0"]
    assert told(again) == []


async def test_a_service_that_keeps_nothing_has_no_part(tmp_path: Path) -> None:
    bench = NotedDaemon(tmp_path)
    await left_by(bench, None)

    assert parts_in(bench) == {}
    assert (await bench.restart()).service.restored == []


def full(file: Path, content: bytes) -> None:
    raise OSError(28, "no space")


async def test_measurements_are_written_with_any_change_and_at_the_end_and_are_no_change_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bench = NotedDaemon(tmp_path)
    bench.service.measures = True
    await left_by(bench, None)
    before = bench.snapshot.read_bytes()

    bench.service.kept = {"seconds": 1}
    await bench.registrar.ledger.save()
    assert bench.snapshot.read_bytes() == before
    await bench.register(bench.mar("n"))
    assert parts_in(bench) == {"noted": {"seconds": 1}}
    bench.service.kept = {"seconds": 2}
    await bench.registrar.ledger.keep_measured()

    assert parts_in(bench) == {"noted": {"seconds": 2, "last": True}}
    bench.service.kept = {"seconds": 3}
    monkeypatch.setattr(snapshot, "write_snapshot", full)
    await bench.registrar.ledger.keep_measured()
    assert f"what was measured is forgotten: cannot write {bench.snapshot}: no space" in caplog.text


async def test_without_restoring_nothing_is_taken_up(tmp_path: Path) -> None:
    bench = NotedDaemon(tmp_path)
    await left_by(bench, {"a": 1})

    assert (await bench.restart(restore="false")).service.restored == []


async def test_a_part_whose_extension_is_not_there_stays_in_the_snapshot_and_is_told(tmp_path: Path) -> None:
    bench = NotedDaemon(tmp_path)
    await left_by(bench, {"a": 1})

    without = StubDaemon(tmp_path)
    await without.start()
    await without.register(without.mar("other"))

    assert parts_in(without) == {"noted": {"a": 1}}
    assert told(without) == [
        "the daemon has no extension `noted`: its part of the snapshot is kept there, and not used"
    ]
    assert (await bench.restart()).service.restored == [({"a": 1}, [])], "of a daemon that has the extension again"


@pytest.mark.parametrize("part", [{"broken": "no such share"}, 1], ids=["what the service refuses", "no object"])
async def test_a_part_that_its_service_cannot_use_is_kept_aside_and_the_daemon_serves(
    tmp_path: Path, part: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = NotedDaemon(tmp_path)
    await left_by(bench, part)
    before = bench.snapshot.read_bytes()

    again = await bench.restart()
    await again.register(again.mar("other"))

    aside = bench.snapshot.with_name("snapshot.broken-1.json")
    assert aside.read_bytes() == before
    (text,) = told(again)
    assert text.startswith("the extension `noted` cannot use its part of the snapshot: ")
    assert text.endswith(f"; the file is kept as {aside}")
    monkeypatch.setattr(snapshot, "copy_aside", full)
    assert again.registrar.ledger.memory.copy_aside() == "the file cannot be copied: no space"
    assert again.names == ["m/1.0", "other/1.0"] and parts_in(again) == {}


def test_parts_are_restored_in_the_order_of_the_services_and_one_that_fails_does_not_stop_the_others() -> None:
    order: list[str] = []

    class Named:
        measures = False

        def __init__(self, name: str) -> None:
            self._name = name

        def keep(self, *, last: bool) -> None:
            del last

        def restore(self, kept: Any) -> None:
            order.append(f"{self._name} {kept}")
            if self._name == "b":
                raise KeyError("bug")

    said: list[str] = []
    parts = KeptParts(said.append)
    parts.services = {name: Named(name) for name in ("b", "a", "c")}

    parts.restore({"a": 1, "b": 2, "d": 4}, lambda: "kept")

    assert order == ["b 2", "a 1"]
    assert [text.partition(":")[0] for text in said] == [
        "the daemon has no extension `d`", "the extension `b` cannot use its part of the snapshot",
    ]  # fmt: skip


@pytest.mark.parametrize("restarted", [False, True])
async def test_what_changes_while_a_model_is_reserved_is_one_change(tmp_path: Path, restarted: bool) -> None:
    bench = NotedDaemon(tmp_path)
    await left_by(bench, None)
    bench.service.reserve("m", ("1.0",))
    bench.service.kept = {"reserved": {"m": ["1.0"]}}
    change(bench, 2)
    await bench.registrar.ledger.save()
    if restarted:
        bench = await bench.restart()
        bench.service.kept = {"reserved": {"m": ["1.0"]}}
    (begun,) = bench.registrar.ledger.memory.earlier
    assert begun.versions[0].request.overrides.batch_size is None

    change(bench, 3)
    bench.registry.reservations.clear()
    bench.service.kept = None
    await bench.registrar.ledger.save()
    assert bench.registrar.ledger.memory.earlier == (begun,), "its end is a part of it"
    change(bench, 4)
    await bench.registrar.ledger.save()

    (earlier,) = bench.registrar.ledger.memory.earlier
    assert earlier.versions[0].request.overrides.batch_size == 3


def change(bench: StubDaemon, batch_size: int) -> None:
    model = bench.registry.find("m")
    overrides = Overrides(**model.request.overrides.said | {"batch_size": batch_size})
    model.request = replace(model.request, overrides=overrides)
