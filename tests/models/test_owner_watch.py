"""An ephemeral version is unregistered when the process of its owner ends, however it ends."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.daemon import StubDaemon, until
from tsctl.daemon.core.errors import Stopping
from tsctl.daemon.lifecycle.upgrade.new import handed_entries
from tsctl.daemon.lifecycle.upgrade.old import expected
from tsctl.daemon.models.persistence.startup import Startup
from tsctl.daemon.models.registering import ownership
from tsctl.daemon.models.registrar import Registration
from tsctl.daemon.models.settings import Overrides
from tsctl.daemon.models.version import ModelVersion


@pytest.fixture
def owner() -> Iterator[subprocess.Popen[bytes]]:
    """A process that lives until it is killed."""
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership, "RETRY", 0.0)


async def serve(bench: StubDaemon, pid: int, url: str, token: str = "mine") -> ModelVersion:
    request = Registration(
        url=url, overrides=Overrides(workers=1), ephemeral=True, owner=token, owner_pid=pid
    )  # fmt: skip
    return await bench.registrar.register(request)


async def test_a_daemon_that_stops_waits_for_no_owner(bench: StubDaemon, owner: subprocess.Popen[bytes]) -> None:
    await serve(bench, owner.pid, bench.mar())
    assert bench.registrar.owners.watching == 1

    bench.registrar.refuse()

    assert bench.registrar.owners.watching == 0


async def test_an_owner_that_ended_before_is_seen(bench: StubDaemon, owner: subprocess.Popen[bytes]) -> None:
    owner.kill()
    owner.communicate()

    with pytest.raises(Stopping):
        await serve(bench, owner.pid, bench.mar())

    await until(lambda: bench.names == [])


async def test_a_number_that_no_process_can_have_is_one_that_ended(bench: StubDaemon) -> None:
    with pytest.raises(Stopping):
        await serve(bench, 10**12, bench.mar())

    await until(lambda: bench.names == [])


async def test_it_goes_after_an_upgrade_that_failed(bench: StubDaemon, owner: subprocess.Popen[bytes]) -> None:
    await serve(bench, owner.pid, bench.mar())
    bench.registrar.gate.close()
    owner.kill()
    await until(lambda: not bench.registrar.owners.watching)
    assert bench.names == ["m/1.0"]

    bench.registrar.gate.open()

    await until(lambda: bench.names == [])


async def test_the_daemon_that_takes_over_sees_the_end_too(
    tmp_path: Path, owner: subprocess.Popen[bytes], bench: StubDaemon
) -> None:
    await serve(bench, owner.pid, bench.mar())
    models = expected(bench.registry, bench.registrar.ledger.hand_over())
    await bench.registrar.stop(0.0)
    new = StubDaemon(tmp_path)
    startup = Startup(new.config, new.registry, new.registrar, replacing=True, handed=handed_entries(models))
    startup.restore()
    await startup.load()
    assert new.names == ["m/1.0"]

    owner.kill()

    await until(lambda: new.names == [])
