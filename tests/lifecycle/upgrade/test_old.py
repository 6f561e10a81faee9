"""The old daemon gives its place to a new one that is ready, and otherwise goes on as if nothing had happened."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from tests.kit.daemon import StubDaemon, until
from tests.kit.services import NotedDaemon
from tsctl.daemon.core.errors import Loading, Stopping, UpgradeFailed, Upgrading
from tsctl.daemon.lifecycle.upgrade import old as room
from tsctl.daemon.lifecycle.upgrade.messages import (
    Expected,
    FromNew,
    Progress,
    ReadyToTakeOver,
    TakenOver,
    TakeoverFailed,
)
from tsctl.daemon.lifecycle.upgrade.old import MemoryCheck, Upgrade
from tsctl.daemon.lifecycle.upgrade.states import Step
from tsctl.daemon.lifecycle.upgrade.successor import NewDaemon, SuccessorGone
from tsctl.daemon.metrics.totals import Totals
from tsctl.daemon.models.persistence.snapshot import read_snapshot

PLENTY = MemoryCheck(1, 2)


class FakeSuccessor(NewDaemon):
    """A new daemon that says what the test puts into `words`; an exception is raised instead."""

    pid = 4711

    def __init__(self, *words: FromNew | Exception) -> None:
        self.words: asyncio.Queue[FromNew | Exception] = asyncio.Queue()
        for word in words:
            self.words.put_nowait(word)
        self.did: list[str] = []
        self.counts: list[Totals] = []

    async def introduce(self) -> None:
        self.did.append("introduced")

    async def hear(self, within: float | None = None) -> FromNew:
        sent = not self.words.empty()  # and is received, then, also after the time
        word = self.words.get_nowait() if sent else await asyncio.wait_for(self.words.get(), within)
        if isinstance(word, Exception):
            raise word
        return word

    async def give(self, counts: list[Totals]) -> None:
        self.did.append("given")
        self.counts += counts

    async def count(self, totals: Totals) -> None:
        self.counts.append(totals)

    async def end(self, *, at_once: bool) -> None:
        self.did.append("killed" if at_once else "ended")

    async def outlive(self) -> None:
        self.did.append("outlived")


class Old:
    """The old daemon's parts, as far as an upgrade needs them."""

    def __init__(self, bench: StubDaemon, successor: FakeSuccessor, memory: MemoryCheck = PLENTY) -> None:
        self.bench = bench
        self.successor = successor
        self.ready = True
        self.reclaimed = 0
        self.models: list[Expected] = []
        self.stages: list[str] = []
        self.upgrade = Upgrade(
            bench.registry, bench.registrar, self._start, lambda: self.ready, self._reclaim, lambda: [self], "1.0",
            lambda _: memory,
        )  # fmt: skip

    def _start(self, python: str | None, models: list[Expected]) -> FakeSuccessor:
        self.models = models
        return self.successor

    def _reclaim(self) -> None:
        self.reclaimed += 1

    def hold(self) -> None:
        self.successor.did.append("closed the door")

    async def resume(self) -> None:
        self.successor.did.append("opened the door")

    async def ask(self, **asked: Any) -> dict[str, Any]:
        return await self.upgrade(lambda stage, done, total: self.stages.append(stage), **asked)

    def serves(self) -> bool:
        """As if nothing had happened."""
        with self.bench.registrar.gate.change():
            return self.upgrade.step is Step.SERVING and not self.upgrade.given.is_set()


async def test_a_new_daemon_that_is_ready_is_given_the_place(bench: StubDaemon) -> None:
    await bench.register(bench.mar(), workers=2)
    old = Old(bench, FakeSuccessor(Progress(1, 2), ReadyToTakeOver("2.0"), TakenOver()))

    began = time.monotonic()
    said = await old.ask(grace=7.0)

    assert 0.0 <= said["seconds"] <= time.monotonic() - began + 0.001
    assert (said["old"]["version"], said["new"]) == ("1.0", {"pid": 4711, "version": "2.0"})
    assert old.stages == ["checking", "starting", "loading", "handing"]
    assert old.models == [Expected("m", "1.0", True, 2)]
    assert old.successor.did == ["introduced", "closed the door", "given"]
    assert (old.upgrade.step, old.upgrade.given.is_set(), old.upgrade.grace) == (Step.DRAINING, True, 7.0)
    with pytest.raises(Upgrading), bench.registrar.gate.change():
        pass
    begun, ended = bench.registrar.events.after()[-2:]
    assert (begun.kind, ended.kind) == ("upgrade-started", "upgraded")
    assert ended.text.startswith("pid 4711, tsctl 2.0, is the daemon now")
    old.upgrade.finish()
    assert old.upgrade.step is Step.STOPPING


async def test_the_counts_are_given_with_the_place_and_then_what_is_counted_since(bench: StubDaemon) -> None:
    model = await bench.register(bench.mar())
    model.metrics.codes[200] += 5
    old = Old(bench, FakeSuccessor(ReadyToTakeOver("2.0"), TakenOver()))

    await old.upgrade.report_counts()  # nobody is there to be told
    await old.ask()
    (given,) = [each for totals in old.successor.counts for each in totals.versions]
    model.metrics.codes[200] += 1
    await old.upgrade.report_counts()
    await old.upgrade.report_counts()
    (late,) = [each for totals in old.successor.counts for each in totals.versions if each is not given]

    assert (given.counters["codes"], late.counters["codes"]) == ({"200": 5}, {"200": 6})


@pytest.mark.parametrize(
    ("words", "reason", "did"),
    [
        pytest.param(
            [TakeoverFailed("no room", "Traceback")], "no room\n\nTraceback", "ended", id="it cannot load a model"
        ),
        pytest.param(
            [SuccessorGone("it died", "its words")], "it died\n\nits words", "ended", id="it dies while it loads"
        ),
        pytest.param([TakenOver()], "before its time", "ended", id="it takes what was not given"),
        pytest.param(
            [ReadyToTakeOver("2.0"), SuccessorGone("it died")],
            "it died",
            "opened the door",
            id="it dies when it is given the place",
        ),
        pytest.param([ReadyToTakeOver("2.0"), TakeoverFailed("no")], "no", "opened the door", id="it cannot listen"),
    ],
)
async def test_a_new_daemon_that_fails_is_seen_dead_and_the_old_one_goes_on(
    bench: StubDaemon, words: list[FromNew | Exception], reason: str, did: str
) -> None:
    await bench.register(bench.mar())
    old = Old(bench, FakeSuccessor(*words))

    with pytest.raises(UpgradeFailed) as failed:
        await old.ask()

    assert str(failed.value).startswith("Upgrade failed; the running daemon stays: ")
    assert reason in str(failed.value)
    assert old.successor.did[-1] == did
    assert old.reclaimed == 1
    assert old.serves()
    event = bench.registrar.events.after()[-1]
    assert event.kind == "upgrade-failed" and reason.partition("\n")[0] in event.text


async def test_one_that_does_not_take_the_place_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "TAKE_TIME", 0.0)

    bench = StubDaemon(tmp_path)
    old = Old(bench, FakeSuccessor(ReadyToTakeOver("2.0")))

    with pytest.raises(UpgradeFailed, match="was ready, and did not take over"):
        await old.ask()

    assert old.successor.did == ["introduced", "closed the door", "given", "killed", "opened the door"]
    await old.upgrade.report_counts()  # nobody is there to be told
    assert old.serves()


async def test_one_that_answers_an_offer_which_took_too_long_to_send_is_the_daemon(
    bench: StubDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "TAKE_TIME", 0.0)

    class ReadAtLast(FakeSuccessor):
        async def give(self, counts: list[Totals]) -> None:
            self.words.put_nowait(TakenOver())
            await asyncio.Event().wait()

    old = Old(bench, ReadAtLast(ReadyToTakeOver("2.0")))

    assert (await old.ask())["new"]["pid"] == 4711


async def test_one_that_has_answered_and_reads_no_counts_is_the_daemon(
    bench: StubDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "COUNT_TIME", 0.0)
    monkeypatch.setattr(room, "COUNTS", 0)  # bytes of the offer: all follow

    class Deaf(FakeSuccessor):
        async def count(self, totals: Totals) -> None:
            self.did.append("counted")
            await asyncio.Event().wait()

    old = Old(bench, Deaf(ReadyToTakeOver("2.0"), TakenOver()))
    (await bench.register(bench.mar())).metrics.codes[200] += 5

    assert (await old.ask())["new"]["pid"] == 4711
    await old.upgrade.report_counts()  # none further: the last line may be cut
    assert old.successor.did == ["introduced", "closed the door", "given", "counted"]


async def test_what_a_new_daemon_acknowledged_before_it_died_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(room, "TAKE_TIME", 0.0)

    bench = StubDaemon(tmp_path)
    await bench.register(bench.mar())
    old = Old(bench, FakeSuccessor(ReadyToTakeOver("2.0")))
    bench.snapshot.write_bytes(bench.snapshot.read_bytes() + b" ")

    with pytest.raises(UpgradeFailed):
        await old.ask()

    assert old.upgrade.given.is_set(), "the old one ends"
    assert "this one stops; the next start uses the snapshot" in caplog.text


async def test_a_daemon_that_does_not_fit_is_not_started(bench: StubDaemon) -> None:
    old = Old(bench, FakeSuccessor(ReadyToTakeOver("2.0"), TakenOver()), MemoryCheck(3 * 1024**3, 1024**3))

    with pytest.raises(UpgradeFailed, match=r"needs about 3 GiB more memory"):
        await old.ask()
    assert old.successor.did == []
    assert old.serves()

    assert (await old.ask(check_memory=False))["new"]["pid"] == 4711


async def test_one_that_is_not_ready_in_time_is_given_up(bench: StubDaemon) -> None:
    old = Old(bench, FakeSuccessor())

    with pytest.raises(UpgradeFailed, match=r"not ready within 0\.5 s"):
        await old.ask(timeout=0.5)  # enough for all before, and no wait for a machine with more to do

    assert old.successor.did == ["introduced", "ended"]
    assert old.serves()


async def test_changes_that_were_begun_are_finished_before_the_new_daemon_starts(bench: StubDaemon) -> None:
    old = Old(bench, FakeSuccessor(ReadyToTakeOver("2.0"), TakenOver()))
    with bench.registrar.gate.change():
        asking = asyncio.ensure_future(old.ask())
        await until(lambda: "checking" in old.stages)
        await bench.register(bench.mar())
        assert old.successor.did == []

    await asking

    assert old.models == [Expected("m", "1.0", True, 1)]
    assert list(bench.remembered) == ["m/1.0"]


async def test_the_new_daemon_reads_what_services_keep_at_last(tmp_path: Path) -> None:
    bench = NotedDaemon(tmp_path)
    bench.service.kept = {"a": 1}
    await bench.register(bench.mar())

    await Old(bench, FakeSuccessor(ReadyToTakeOver("2.0"), TakenOver())).ask()

    written = read_snapshot(bench.snapshot)
    assert written is not None and written.extensions == {"noted": {"a": 1, "last": True}}


async def test_a_change_that_does_not_end_gives_the_upgrade_up(bench: StubDaemon) -> None:
    old = Old(bench, FakeSuccessor())
    with (
        bench.registrar.gate.change(),
        pytest.raises(UpgradeFailed, match=r"changes in progress did not finish within 0\.01 s"),
    ):
        await old.ask(timeout=0.01)

    assert old.serves()


async def test_what_cannot_be_written_cannot_be_handed_over(bench: StubDaemon) -> None:
    await bench.register(bench.mar())
    bench.snapshot.unlink()
    bench.snapshot.mkdir()
    bench.registrar.ledger.choose_default("m", "1.0")
    old = Old(bench, FakeSuccessor())

    with pytest.raises(UpgradeFailed, match="the snapshot for the new daemon cannot be written: cannot write"):
        await old.ask()

    assert old.serves()


async def test_there_is_one_upgrade_at_a_time_none_during_the_start_and_a_stop_gives_it_up(
    bench: StubDaemon,
) -> None:
    old = Old(bench, FakeSuccessor())
    old.ready = False
    with pytest.raises(Loading):
        await old.ask()
    old.ready = True
    asking = asyncio.ensure_future(old.ask())
    await until(lambda: old.upgrade.step is Step.LOADING)

    with pytest.raises(Upgrading):
        await old.ask()

    await old.upgrade.settle()
    with pytest.raises(Stopping, match="told to stop"):
        await asking
    assert old.successor.did == ["introduced", "ended"]
    assert old.upgrade.step is Step.STOPPING


@pytest.mark.parametrize("last", [TakenOver(), SuccessorGone("it died")], ids=["it takes the place", "it dies"])
async def test_a_stop_while_the_place_is_given_away_waits_for_who_has_it(
    bench: StubDaemon, last: FromNew | Exception
) -> None:
    old = Old(bench, FakeSuccessor(ReadyToTakeOver("2.0")))
    asking = asyncio.ensure_future(old.ask())
    await until(lambda: old.upgrade.step is Step.HANDING)
    settling = asyncio.ensure_future(old.upgrade.settle())
    await asyncio.sleep(0)
    assert not settling.done()

    old.successor.words.put_nowait(last)
    await settling

    assert old.upgrade.step is Step.STOPPING
    assert old.upgrade.given.is_set() is isinstance(last, TakenOver)
    await asyncio.gather(asking, return_exceptions=True)


async def test_whoever_asked_may_leave(bench: StubDaemon) -> None:
    old = Old(bench, FakeSuccessor())
    asking = asyncio.ensure_future(old.ask())
    await until(lambda: old.upgrade.step is Step.LOADING)

    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    old.successor.words.put_nowait(ReadyToTakeOver("2.0"))
    old.successor.words.put_nowait(TakenOver())

    await until(old.upgrade.given.is_set)


async def test_an_ephemeral_version_is_told_with_its_registration_and_taken_back_after_a_failure(
    bench: StubDaemon,
) -> None:
    await bench.register(bench.mar("m"))
    model = await bench.register(bench.mar("e"), ephemeral=True, owner="mine")
    old = Old(bench, FakeSuccessor(TakeoverFailed("no room")))

    with pytest.raises(UpgradeFailed):
        await old.ask()

    assert [(each.name, bool(each.entry)) for each in old.models] == [("e", True), ("m", False)]
    await bench.registrar.unregister("e", None)
    assert not model.source.directory.exists()


async def test_the_files_of_an_ephemeral_version_outlive_the_old_daemon(bench: StubDaemon) -> None:
    model = await bench.register(bench.mar("e"), ephemeral=True, owner="mine")
    old = Old(bench, FakeSuccessor(ReadyToTakeOver("2.0"), TakenOver()))

    await old.ask()
    await bench.registrar.stop(0.0)

    assert model.source.directory.is_dir()
