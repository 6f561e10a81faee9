"""The daemon's side of the bridge, whose process is the test."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.kit.build import make_spec
from tests.kit.client import Client
from tests.kit.ray_cluster import until
from tests.kit.worker import WorkerLog
from tsctl.daemon.core.clock import LoopClock
from tsctl.daemon.core.job import Batch
from tsctl.daemon.extensions.ray.bridge import Bridge
from tsctl.daemon.workers.engine import UNREACHABLE
from tsctl.daemon.workers.local import LocalWorker
from tsctl.daemon.workers.processes.reaper import Process
from tsctl.daemon.workers.processes.spawn import Pipes
from tsctl.handlers import wire
from tsctl.handlers.frame_reader import FrameReader
from tsctl.handlers.ray import messages
from tsctl.handlers.ray.messages import ActorOptions, Connect, KillRemote, Placed, RemoteEnded, StartRemote, Waits

OPTIONS = ActorOptions(num_cpus=2, resources={"disk": 1}, placement="PACK")


class Started(Process):
    """A bridge's process: the test.

    Attributes:
        orders: all that it was sent.
        channels: of each worker, by its number: the end of the frames.
    """

    def __init__(self, sock: socket.socket, output: Pipes, ended: Callable[[], None]) -> None:
        super().__init__(4711)
        self.sock = sock.dup()
        self.sock.setblocking(False)
        self.ended = ended
        self.orders: list[messages.BridgeOrder] = []
        self.channels: dict[int, socket.socket] = {}
        self.killed = False
        self._pipes: dict[int, list[int]] = {}

    def kill(self) -> None:
        self.killed = True

    def take(self) -> list[messages.BridgeOrder]:
        """Take all orders that have come."""
        while True:
            try:
                packet, descriptors, _, _ = socket.recv_fds(self.sock, messages.LARGEST, 3)
            except OSError:  # none, or the test has closed the socket
                return self.orders
            if not packet:
                return self.orders
            order = messages.decode_order(packet)
            self.orders.append(order)
            if isinstance(order, StartRemote):
                frames, *self._pipes[order.number] = descriptors
                self.channels[order.number] = socket.socket(fileno=frames)

    def report(self, report: messages.BridgeReport) -> None:
        self.sock.send(messages.encode(report))

    def say(self, number: int, *said: wire.ToDaemon) -> None:
        self.channels[number].sendall(b"".join(map(wire.encode, said)))

    def hear(self, number: int) -> list[wire.ToWorker]:
        """Take the frames that the daemon has sent to a worker."""
        data = self.channels[number].recv(10**6)
        return [wire.decode_for_worker(frame) for frame in FrameReader().feed(data)]

    def let_go(self, number: int) -> None:
        """Close a worker's channels."""
        self.channels.pop(number).close()
        for pipe in self._pipes.pop(number):
            os.close(pipe)

    def die(self, code: int = -9) -> None:
        """End: all channels close, and the daemon sees the end of the process."""
        self.sock.close()
        for number in list(self.channels):
            self.let_go(number)
        self.returncode = code
        self.ended()


class Daemon:
    """A daemon with a bridge, and workers that are ordered of it."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.clock = LoopClock(self.loop)
        self.started: list[Started] = []
        self.bridge = Bridge("head:6379", {"TS_X": "1"}, self.loop, self.clock, self._start)
        self.log = WorkerLog()
        self.workers = 0

    def _start(self, sock: socket.socket, output: Pipes, ended: Callable[[], None]) -> Process:
        self.started.append(Started(sock, output, ended))
        return self.started[-1]

    @property
    def process(self) -> Started:
        return self.started[-1]

    def worker(self, **spec: Any) -> LocalWorker:
        self.workers += 1
        made = make_spec(own=OPTIONS, threads=3, **spec)
        return LocalWorker(made, self.log, self.log, self.loop, self.clock, self.bridge, None)

    async def ready(self, **spec: Any) -> LocalWorker:
        """Return a worker that has loaded its model."""
        worker = self.worker(**spec)
        *_, order = self.process.take()
        assert isinstance(order, StartRemote)
        self.process.report(Placed(order.number, "n1", 77))
        await until(lambda: worker.pid == 77)
        self.process.say(order.number, wire.Hello(77), wire.Loaded(0.1, False))
        await until(lambda: self.log.events[-1:] == ["loaded"])
        return worker

    async def events(self, count: int) -> list[str]:
        """Wait for so many events of workers."""
        await until(lambda: len(self.log.events) >= count)
        return self.log.events


@asynccontextmanager
async def with_daemon() -> AsyncIterator[Daemon]:
    daemon = Daemon()
    yield daemon
    daemon.bridge.close()
    for each in daemon.started:
        each.take()
        for number in list(each.channels):
            each.let_go(number)
        each.sock.close()
    await until(lambda: len(daemon.log.exits) == daemon.workers)
    await asyncio.sleep(0.01)  # transports close their sockets in later turns


async def test_no_bridge_is_started_before_the_first_worker() -> None:
    async with with_daemon() as daemon:
        assert daemon.started == []

        daemon.worker()
        daemon.worker()

        assert len(daemon.started) == 1
        assert daemon.process.take() == [
            Connect("head:6379"),
            StartRemote(1, "m/1.0", "/nowhere", OPTIONS, 3, {"TS_X": "1"}),
            StartRemote(2, "m/1.0", "/nowhere", OPTIONS, 3, {"TS_X": "1"}),
        ]


async def test_a_worker_on_a_node_is_a_worker_with_a_node() -> None:
    async with with_daemon() as daemon:
        worker = await daemon.ready()

        assert (worker.pid, worker.node, worker.waits) == (77, "n1", "")
        [load] = daemon.process.hear(1)
        assert isinstance(load, wire.Load) and load.threads == 3


async def test_the_reason_of_a_worker_without_a_node_is_that_of_its_startup_timeout() -> None:
    async with with_daemon() as daemon:
        worker = daemon.worker(startup_timeout=0.05)
        daemon.process.take()
        daemon.process.report(Waits(1, "it takes 1 GPU, and GPU is missing: no node has any"))
        await until(lambda: bool(worker.waits))

        late = "the model was not loaded within the startup timeout of 0.05 s"
        assert (await daemon.events(1))[0] == (
            f"load failed: {late}: it takes 1 GPU, and GPU is missing: no node has any"
        )
        assert await daemon.events(2)
        assert daemon.process.take()[-1] == KillRemote(1)


@pytest.mark.parametrize("ends", ["RemoteEnded", "the bridge"])
@pytest.mark.parametrize("retry", [True, False])
async def test_a_lost_worker_may_have_begun_each_of_its_batches(ends: str, retry: bool) -> None:
    async with with_daemon() as daemon:
        worker = await daemon.ready(retry=retry)
        sent = Batches(worker)
        if ends == "the bridge":
            daemon.process.die()
            reason = "the bridge to Ray has ended (killed by signal 9)"
        else:
            reason = "its actor on node n1 does not answer"
            daemon.process.report(RemoteEnded(1, -9, reason))
            daemon.process.let_go(1)

        await until(lambda: bool(daemon.log.exits))
        [exit_] = daemon.log.exits
        assert (exit_.kind, exit_.reason, exit_.crashed, exit_.busy) == (UNREACHABLE, reason, False, True)
        assert {(each.fate.name, each.retry) for each in daemon.log.outcomes} == {("LOST", retry)}
        assert {each.job for each in daemon.log.outcomes} == set(sent.jobs)


async def test_batches_behind_one_that_ended_its_process_have_not_begun() -> None:
    async with with_daemon() as daemon:
        worker = await daemon.ready()
        Batches(worker)
        daemon.process.report(RemoteEnded(1, 7))
        daemon.process.let_go(1)

        await until(lambda: bool(daemon.log.exits))
        assert [(each.fate.name, each.retry) for each in daemon.log.outcomes] == [
            ("UNSTARTED", True),
            ("CRASHED_ALONE", True),
        ]
        assert daemon.log.exits[0].reason == "it exited with code 7"


async def test_after_a_bridge_another_one_is_started_with_the_next_worker() -> None:
    async with with_daemon() as daemon:
        await daemon.ready()
        daemon.process.die(1)
        await until(lambda: bool(daemon.log.exits))

        await daemon.ready()

        assert len(daemon.started) == 2
        assert daemon.process.take()[0] == Connect("head:6379")


async def test_a_worker_that_is_killed_before_it_has_a_process_never_gets_one() -> None:
    async with with_daemon() as daemon:
        worker = daemon.worker()
        worker.kill()
        assert daemon.process.take()[-1] == KillRemote(1)
        daemon.process.report(RemoteEnded(1, -9))

        assert await daemon.events(1) == ["exited: it was stopped"]


async def test_a_worker_that_got_its_process_while_it_was_killed_is_killed_again() -> None:
    async with with_daemon() as daemon:
        worker = daemon.worker()
        daemon.process.take()
        daemon.process.report(Placed(1, "n1", 77))
        worker.kill()  # the report waits unread

        await until(lambda: daemon.process.take()[-2:] == [KillRemote(1), KillRemote(1)])


async def test_a_closed_bridge_is_killed() -> None:
    async with with_daemon() as daemon:
        await daemon.ready()
        daemon.bridge.close()

        assert daemon.process.killed
        await until(lambda: bool(daemon.log.exits))
        assert daemon.log.exits[0].reason == "the bridge to Ray has ended (the daemon stops)"


class Batches:
    """Two batches in flight at a worker."""

    def __init__(self, worker: LocalWorker) -> None:
        client = Client(lambda: 0.0)
        self.jobs = [client.job(name, body=b"x") for name in "ab"]
        for number, job in enumerate(self.jobs):
            job.send()
            worker.predict(Batch(number, [job], "full"))
