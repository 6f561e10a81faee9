"""Both ways into service are the same steps: place, plan, prepare, listen, begin."""

import asyncio
import os
import socket
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.kit.daemon import StubDaemon
from tsctl.daemon import paths
from tsctl.daemon.config.endpoints import choose_endpoints
from tsctl.daemon.core.errors import StartError, Upgrading
from tsctl.daemon.lifecycle.boot import Boot, Takeover
from tsctl.daemon.lifecycle.instance import Instance
from tsctl.daemon.lifecycle.upgrade.messages import (
    Bound,
    Channel,
    Expected,
    Inheritance,
    Progress,
    ReadyToTakeOver,
    TakenOver,
    TakeOver,
    decode_from_new,
    encode,
)
from tsctl.daemon.lifecycle.upgrade.new import Predecessor
from tsctl.daemon.models.persistence.startup import Startup
from tsctl.daemon.models.registrar import Registrar

ADDRESS = {"inference_address": "127.0.0.1:0"}
LEFTOVER = "0" * 40  # a directory in which no model is


class Booted(NamedTuple):
    place: Instance
    startup: Startup
    registrar: Registrar


def boot(bench: StubDaemon, way: Boot) -> Booted:
    place = way.take_place(bench.config, choose_endpoints(bench.config))
    return Booted(place, way.plan(bench.config, bench.registry, bench.registrar), bench.registrar)


def close(*places: Instance) -> None:
    for each in places:
        for sock in (each.control, *(listening for _, listening in each.bound)):
            sock.close()


def changes_are_admitted(service: Booted) -> bool:
    try:
        with service.registrar.gate.change():
            return True
    except Upgrading:
        return False


class Old:
    """A daemon that serves one model, and is to be replaced."""

    def __init__(self, bench: StubDaemon, *, stand_in: bool = False) -> None:
        self.service = boot(bench, Boot())
        said = self.service.place.inheritance([Expected("m", "1.0", True, 1)], stand_in=stand_in)
        ours, theirs = socket.socketpair()
        ours.sendall(encode(self._duplicate(said)))
        self.channel_end = ours
        self.predecessor = Predecessor(theirs.detach())

    def close(self) -> None:
        self.channel_end.close()
        self.predecessor.close()
        close(self.service.place)

    @staticmethod
    def _duplicate(said: Inheritance) -> Inheritance:
        """Return the inheritance with descriptors of its own, as in another process."""
        bound = [Bound(each.flag, each.host, each.port, os.dup(each.descriptor)) for each in said.endpoints]
        locks = os.dup(said.locks[0]), os.dup(said.locks[1])
        return Inheritance(bound, os.dup(said.control), said.inode, locks, said.models, said.stand_in)


def pid_file_is_claimed(bench: StubDaemon) -> bool:
    return bool(paths.pid_file(bench.config.socket).read_text())


async def test_a_cold_start_registers_the_models_of_the_snapshot_when_it_begins(tmp_path: Path) -> None:
    first = StubDaemon(tmp_path)
    await first.register(first.mar())
    bench = StubDaemon(tmp_path, **ADDRESS)
    way = Boot()

    service = boot(bench, way)
    await way.prepare(*service, asyncio.Event())
    assert bench.names == []
    await way.begin(*service)

    assert bench.names == ["m/1.0"]
    assert changes_are_admitted(service)
    assert service.place.ours
    service.place.leave()
    close(service.place)


class New:
    """A new daemon that is about to replace an old one."""

    def __init__(self, root: Path) -> None:
        self.old = Old(StubDaemon(root, **ADDRESS))
        self.bench = StubDaemon(root, **ADDRESS)
        self.way = Takeover(self.old.predecessor, "2.0")
        self.service = boot(self.bench, self.way)
        paths.pid_file(self.bench.config.socket).write_text("")

    def close(self) -> None:
        self.old.close()
        close(self.service.place)


async def test_a_takeover_has_its_models_ready_before_it_listens(tmp_path: Path) -> None:
    first = StubDaemon(tmp_path)
    await first.register(first.mar())
    new = New(tmp_path)
    bench, way, service, channel = new.bench, new.way, new.service, Channel(new.old.channel_end)

    preparing = asyncio.ensure_future(way.prepare(*service, asyncio.Event()))
    heard = [decode_from_new(await channel.hear())]
    while isinstance(heard[-1], Progress):
        heard.append(decode_from_new(await channel.hear()))
    assert heard[-1] == ReadyToTakeOver("2.0")
    assert bench.registry.find("m").pool.ready == 1
    assert not pid_file_is_claimed(bench)  # nothing changes on the disk before the old daemon agrees
    await channel.tell(TakeOver())
    await preparing

    assert pid_file_is_claimed(bench)
    assert not service.place.ours
    assert not changes_are_admitted(service)  # until the old daemon knows
    await way.begin(*service)
    assert decode_from_new(await channel.hear()) == TakenOver()
    assert service.place.ours
    assert changes_are_admitted(service)
    new.close()


async def test_a_takeover_that_is_told_to_stop_takes_nothing(tmp_path: Path) -> None:
    first = StubDaemon(tmp_path)
    await first.register(first.mar())
    new, stop = New(tmp_path), asyncio.Event()
    stop.set()

    with pytest.raises(StartError, match="told to stop before it had taken over"):
        await new.way.prepare(*new.service, stop)

    assert not pid_file_is_claimed(new.bench)
    assert not new.service.place.ours
    new.close()


async def test_only_a_cold_start_cleans_up_since_an_old_daemon_still_uses_its_files(tmp_path: Path) -> None:
    bench = StubDaemon(tmp_path, **ADDRESS)
    old = Old(bench)
    leftover = bench.models_dir / LEFTOVER
    leftover.mkdir(parents=True)

    Takeover(old.predecessor, "2.0").plan(bench.config, bench.registry, bench.registrar)
    assert leftover.exists()
    bench.registrar.directories.own()  # which is another daemon's, that begins alone
    Boot().plan(bench.config, bench.registry, bench.registrar)
    assert not leftover.exists()
    old.close()


async def test_a_takeover_serves_exactly_the_models_of_the_old_daemon_whatever_settings_say(
    tmp_path: Path,
) -> None:
    first = StubDaemon(tmp_path)
    await first.register(first.mar())
    other = first.mar("other")

    async def started(way: Boot, **flags: str) -> list[str]:
        bench = StubDaemon(tmp_path, models=other, **flags)
        startup = way.plan(bench.config, bench.registry, bench.registrar)
        startup.restore()
        await startup.load()
        return bench.names

    old, written = Old(StubDaemon(tmp_path, **ADDRESS)), first.snapshot.read_bytes()

    assert await started(Takeover(old.predecessor, "2.0"), restore="false") == ["m/1.0"]
    assert first.snapshot.read_bytes() == written
    assert await started(Boot()) == ["m/1.0", "other/1.0"]
    old.close()


@pytest.mark.parametrize("stand_in", [True, False])
async def test_a_stand_in_stays_over_all_takeovers(tmp_path: Path, stand_in: bool) -> None:
    bench = StubDaemon(tmp_path, **ADDRESS)
    old = Old(bench, stand_in=stand_in)

    assert Takeover(old.predecessor, "2.0").has_stand_in is stand_in
    assert Boot().has_stand_in is False
    old.close()
