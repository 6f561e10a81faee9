"""The bridge's side of the socket to the daemon: orders in, reports out."""

import asyncio
import socket
from collections.abc import Callable

from tsctl.handlers.ray.messages import (
    LARGEST,
    BridgeReport,
    Connect,
    KillRemote,
    RemoteEnded,
    StartRemote,
    decode_order,
    encode,
)
from tsctl.handlers.ray.remote_worker import Actors, Channels, RemoteWorker


class OrderTaker:
    """The workers of one daemon on one cluster.

    Attributes:
        closed: done when the daemon has closed the socket.

    Args:
        control: the socket of orders and reports.
        cluster_at: makes the connection to an address, for workers to use.
    """

    def __init__(self, control: socket.socket, cluster_at: Callable[[str], Actors]) -> None:
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._control = control
        self._cluster_at = cluster_at
        self._cluster = cluster_at("auto")
        self._workers: dict[int, RemoteWorker] = {}
        asyncio.get_running_loop().add_reader(control.fileno(), self._read)

    async def close(self) -> None:
        """End all workers."""
        asyncio.get_running_loop().remove_reader(self._control.fileno())
        for worker in list(self._workers.values()):
            worker.kill()
            await worker.ended()

    def _read(self) -> None:
        try:
            packet, descriptors, _, _ = socket.recv_fds(self._control, LARGEST, 3, socket.MSG_CMSG_CLOEXEC)
        except OSError:
            packet, descriptors = b"", []
        if not packet:
            if not self.closed.done():
                self.closed.set_result(None)
            return
        order = decode_order(packet)
        match order:
            case Connect():
                self._cluster = self._cluster_at(order.address)
            case StartRemote():
                frames, stdout, stderr = descriptors
                channels = Channels(socket.socket(fileno=frames), stdout, stderr)
                self._workers[order.number] = RemoteWorker(order, channels, self._cluster, self._report)
            case KillRemote():
                worker = self._workers.get(order.number)
                if worker is not None:
                    worker.kill()

    def _report(self, report: BridgeReport) -> None:
        if isinstance(report, RemoteEnded):
            self._workers.pop(report.number, None)
        try:
            self._control.send(encode(report))
        except OSError:  # the daemon has gone
            if not self.closed.done():
                self.closed.set_result(None)
