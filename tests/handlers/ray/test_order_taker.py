"""The bridge's side of the socket to the daemon."""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator

from tests.kit.ray_cluster import FakeCluster, until
from tsctl.handlers.ray import messages
from tsctl.handlers.ray.messages import ActorOptions, Connect, KillRemote, RemoteEnded, StartRemote
from tsctl.handlers.ray.order_taker import OrderTaker

OPTIONS = ActorOptions()


class Bench:
    """A bridge of one cluster, and the daemon's end of its socket."""

    def __init__(self) -> None:
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.setblocking(False)
        self.clusters: list[FakeCluster] = []
        self.taker = OrderTaker(theirs, self._cluster)
        self.theirs = theirs
        self.heard: list[messages.BridgeReport] = []

    def _cluster(self, address: str) -> FakeCluster:
        self.clusters.append(FakeCluster(address))
        return self.clusters[-1]

    def order(self, order: messages.BridgeOrder) -> None:
        if not isinstance(order, StartRemote):
            self.control.send(messages.encode(order))
            return
        ours, frames = socket.socketpair()
        pipes = [os.pipe(), os.pipe()]
        socket.send_fds(self.control, [messages.encode(order)], [frames.fileno(), pipes[0][1], pipes[1][1]])
        for each in (ours, frames):
            each.close()
        for pipe in pipes:
            os.close(pipe[0])
            os.close(pipe[1])

    def reports(self) -> list[messages.BridgeReport]:
        with contextlib.suppress(BlockingIOError):
            while True:
                self.heard.append(messages.decode_report(self.control.recv(messages.LARGEST)))
        return self.heard


def start(number: int) -> StartRemote:
    return StartRemote(number, "m/1.0", "/m", OPTIONS, 1, {})


@contextlib.asynccontextmanager
async def bridge() -> AsyncIterator[Bench]:
    bench = Bench()
    yield bench
    await bench.taker.close()
    bench.control.close()
    bench.theirs.close()


async def test_workers_are_started_on_the_cluster_of_the_first_order() -> None:
    async with bridge() as bench:
        bench.order(Connect("head:6379"))
        bench.order(start(1))
        bench.order(start(2))
        await until(lambda: len(bench.clusters[-1].actors) == 2)

        assert bench.clusters[-1].address == "head:6379"
        assert [actor.name for actor in bench.clusters[-1].actors] == ["m/1.0 1.1", "m/1.0 2.1"]


async def test_a_killed_worker_is_reported_once() -> None:
    async with bridge() as bench:
        bench.order(start(1))
        await until(lambda: bool(bench.clusters[-1].actors))
        for number in (1, 1, 9):  # a second time, and an unknown one
            bench.order(KillRemote(number))

        await until(lambda: bool(bench.reports()))
        await asyncio.sleep(0.01)
        assert bench.reports() == [RemoteEnded(1, -9)]
        await until(lambda: bench.clusters[-1].actors[0].killed)


async def test_a_daemon_that_has_gone_ends_all_workers() -> None:
    async with bridge() as bench:
        bench.order(start(1))
        await until(lambda: bool(bench.clusters[-1].actors))
        bench.control.close()

        await asyncio.wait_for(bench.taker.closed, 20)
        await bench.taker.close()
        await until(lambda: bench.clusters[-1].actors[0].killed)
