"""Processes left by workers are killed, and no other child of the daemon."""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.kit.clock import FakeClock
from tsctl.daemon.workers.processes import leftovers as room
from tsctl.daemon.workers.processes.leftovers import AGAIN, MARK, ROUNDS, Child, Leftovers, child_of, children_of

US = os.getpid()


def write_stat(proc: Path, pid: int, parent: int, session: int, state: str = "S", name: str = "a (b) c") -> None:
    (proc / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "stat").write_text(f"{pid} ({name}) {state} {parent} {pid} {session} 0 -1 4194560")


def write_list(proc: Path, parent: int, task: int, pids: str) -> None:
    folder = proc / str(parent) / "task" / str(task)
    folder.mkdir(parents=True)
    (folder / "children").write_text(pids)


@pytest.mark.parametrize("listed", [True, False], ids=["with the kernel's list", "without it"])
def test_children_are_read_from_proc(listed: bool, tmp_path: Path) -> None:
    for pid, parent, state in ((20, 1, "S"), (21, 1, "Z"), (22, 7, "S"), (23, 1, "R")):
        write_stat(tmp_path, pid, parent, 1000 + pid, state)
    (tmp_path / "meminfo").write_text("")
    if listed:
        write_list(tmp_path, 1, 1, "20 21 ")
        write_list(tmp_path, 1, 2, "23 24 ")

    found = children_of(1, tmp_path)

    assert sorted(found) == [Child(20, 1020), Child(23, 1023)]
    assert child_of(22, 1, tmp_path) is None and child_of(99, 1, tmp_path) is None


class ScanningLoop:
    """Runs what goes to a thread when it is told to."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def run_in_executor(self, executor: Any, call: Callable[..., Any], *arguments: Any) -> "Scan":
        scan = Scan()
        self.waiting.append(lambda: scan.finish(call(*arguments)))
        return scan

    def turn(self) -> None:
        waiting, self.waiting = self.waiting, []
        for call in waiting:
            call()


class Scan:
    def add_done_callback(self, call: Callable[[Any], None]) -> None:
        self._call = call

    def finish(self, found: list[Child]) -> None:
        done: asyncio.Future[list[Child]] = asyncio.Future(loop=asyncio.new_event_loop())
        done.set_result(found)
        self._call(done)
        done.get_loop().close()


@dataclass
class Machine:
    """This process's children, which die as they are killed."""

    children: list[Child] = field(default_factory=list)
    killed: list[int] = field(default_factory=list)
    known: set[int] = field(default_factory=set)
    marks: set[int] = field(default_factory=set)
    settled: bool = True
    clock: FakeClock = field(default_factory=FakeClock)
    loop: ScanningLoop = field(default_factory=ScanningLoop)
    leaves: Callable[[Child], list[Child]] = field(default=lambda child: [])

    def leftovers(self) -> Leftovers:
        loop: Any = self.loop
        return Leftovers(loop, self.clock, self.known.__contains__, lambda: self.settled)

    def kill(self, pid: int, number: int) -> None:
        assert number == signal.SIGKILL
        (child,) = [each for each in self.children if each.pid == pid]
        self.killed.append(pid)
        self.children.remove(child)
        self.children += self.leaves(child)

    def go_on(self, turns: int = 100) -> None:
        for _ in range(turns):
            self.loop.turn()
            self.clock.advance(AGAIN)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine()
    monkeypatch.setattr(room, "children_of", lambda parent: list(machine.children))
    monkeypatch.setattr(room, "child_of", lambda pid, parent: next((c for c in machine.children if c.pid == pid), None))
    monkeypatch.setattr(room, "marked", lambda pid, mark: pid in machine.marks and mark == f"{MARK}={US}")
    monkeypatch.setattr(room, "_reap", lambda pid: None)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setattr(os, "getpgid", lambda pid: pid)
    monkeypatch.setattr(os, "killpg", machine.kill)
    return machine


def test_nobody_looks_before_a_worker_has_ended(machine: Machine) -> None:
    machine.leftovers()
    machine.children.append(Child(20, 20))

    machine.go_on()

    assert machine.killed == []


def test_only_what_is_nobodys_is_killed(machine: Machine) -> None:
    machine.children = [Child(10, 10)]  # it was there before
    leftovers = machine.leftovers()
    machine.known.add(11)
    leftovers.spared.add(12)
    machine.children += [Child(11, 11), Child(12, 12), Child(13, os.getsid(0)), Child(14, 14)]

    leftovers.look()
    machine.go_on()

    assert machine.killed == [14]


def test_what_is_killed_may_leave_more(machine: Machine) -> None:
    leftovers = machine.leftovers()
    machine.children.append(Child(20, 20))
    machine.leaves = lambda child: [Child(child.pid + 1, child.pid + 1)] if child.pid < 25 else []

    leftovers.look()
    machine.go_on()

    assert machine.killed == [20, 21, 22, 23, 24, 25]


@pytest.mark.parametrize("stops", [True, False], ids=["at the stop", "when a worker ends"])
def test_what_is_born_faster_than_it_dies_holds_nobody_up(stops: bool, machine: Machine) -> None:
    leftovers = machine.leftovers()
    machine.children.append(Child(20, 20))
    machine.leaves = lambda child: [Child(child.pid + 1, child.pid + 1)]

    if stops:
        leftovers.kill_all()
    else:
        leftovers.look()
        machine.go_on(10 * ROUNDS)

    assert len(machine.killed) == ROUNDS


def test_while_a_worker_is_forked_nobody_knows_whose_a_child_is(machine: Machine) -> None:
    leftovers = machine.leftovers()
    machine.settled = False
    machine.children += [Child(20, 20), Child(21, 21)]

    leftovers.look()
    machine.go_on(3)
    assert machine.killed == []
    machine.known.add(20)
    machine.settled = True
    machine.go_on()

    assert machine.killed == [21]


def test_a_daemon_that_was_replaced_kills_only_what_was_its_own(machine: Machine) -> None:
    leftovers = machine.leftovers()
    machine.children += [Child(20, 20), Child(21, 21)]
    machine.marks.add(21)
    leftovers.beware_of_strangers()

    leftovers.look()
    machine.go_on()
    leftovers.kill_all()

    assert machine.killed == [21] and machine.children == [Child(20, 20)]


def test_at_the_stop_workers_are_killed_too(machine: Machine) -> None:
    leftovers = machine.leftovers()
    machine.known.add(20)
    machine.children += [Child(20, 20), Child(21, 21)]

    leftovers.kill_all()

    assert sorted(machine.killed) == [20, 21]


def test_a_process_of_another_user_is_left(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(pid: int, number: int) -> None:
        raise PermissionError

    leftovers = machine.leftovers()
    machine.children.append(Child(20, 20))
    monkeypatch.setattr(os, "killpg", forbidden)

    leftovers.kill_all()

    assert leftovers.spared == {20}
