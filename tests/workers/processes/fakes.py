"""A loop that watches nothing by itself, children without processes, and a template that is a test."""

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from tsctl.daemon.workers.processes.reaper import Process
from tsctl.daemon.workers.processes.spawn import SpawnRequest, open_pipes
from tsctl.handlers import orders


class FakeLoop:
    """Calls readers when it is told to turn."""

    def __init__(self) -> None:
        self.readers: dict[int, Callable[[], None]] = {}

    def add_reader(self, descriptor: int, call: Callable[[], None]) -> None:
        self.readers[descriptor] = call

    def remove_reader(self, descriptor: int) -> None:
        del self.readers[descriptor]

    def turn(self) -> None:
        for call in list(self.readers.values()):
            call()


@dataclass
class FakeChildren:
    """Keeps who is to be told of each end."""

    expected: int = 0
    ends: dict[int, Callable[[], None]] = field(default_factory=dict)
    processes: dict[int, "FakeProcess"] = field(default_factory=dict)
    adopts: bool = False

    def adopt(self) -> None:
        self.adopts = True

    def watch_child(self, pid: int, ended: Callable[[], None], wait: Callable[[], int] | None = None) -> Process:
        self.ends[pid] = ended
        self.processes[pid] = FakeProcess(pid)
        return self.processes[pid]

    def end(self, pid: int, code: int) -> None:
        self.processes[pid].returncode = code
        self.ends.pop(pid)()


class FakeProcess(Process):
    killed = False

    def kill(self) -> None:
        self.killed = True


class Peer:
    """The process's end of a template's socket."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        sock.setblocking(False)
        self.descriptors: list[int] = []

    def say(self, report: orders.Report) -> None:
        self.sock.send(orders.encode(report))

    def hear(self) -> orders.Order | None:
        """Take an order; None if there is none."""
        try:
            packet, descriptors, _, _ = socket.recv_fds(self.sock, orders.LARGEST, 3)
        except BlockingIOError:
            return None
        self.descriptors = descriptors
        order: orders.Order = orders.decode_order(packet)
        return order

    def close(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors = []
        self.sock.close()


class Told:
    """The events of one birth."""

    def __init__(self, order: orders.Order | None = None) -> None:
        self.process: Process | None = None
        self.failure = ""
        self.over = False
        self.peer, theirs = socket.socketpair()
        reading, writing = open_pipes()
        reading.close()
        order = order or orders.Fork(1, "/nowhere")
        self.request = SpawnRequest(order, theirs, writing, self._born, self._failed, self._ended)

    @property
    def open(self) -> bool:
        """The daemon still has its copies of the new process's descriptors."""
        return self.request.socket.fileno() >= 0

    def close(self) -> None:
        self.request.close()
        self.peer.close()

    def _born(self, process: Process) -> None:
        self.process = process

    def _failed(self, reason: str) -> None:
        self.failure = reason

    def _ended(self) -> None:
        self.over = True


class Births:
    """The births that a test asks templates for, on a loop and with children that are fakes."""

    def __init__(self) -> None:
        self.loop, self.children = FakeLoop(), FakeChildren()
        self.told: list[Told] = []

    def expect(self, order: orders.Order | None = None) -> Told:
        """Make a birth, whose events are kept."""
        self.told.append(Told(order))
        return self.told[-1]

    def report(self, peer: Peer, report: orders.Report) -> None:
        """Let the process of a template report, and the daemon read that."""
        peer.say(report)
        self.loop.turn()

    def close(self) -> None:
        for told in self.told:
            told.close()
