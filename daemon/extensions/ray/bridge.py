"""The daemon's side of the bridge: a source of processes, as templates are, that run on a Ray cluster.

    no bridge ──a worker is wanted──▶ RUNS ──it ends, or is closed──▶ no bridge

A bridge that ends takes its workers along: each of them is lost, and may have run its batches. The pool starts
others, and with the first of them another bridge.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Mapping
from importlib.util import find_spec

from tsctl.daemon.config.config import Config
from tsctl.daemon.config.worker_env import model_environment
from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.errors import BadRequest, InvalidModel
from tsctl.daemon.models.settings import ModelSettings
from tsctl.daemon.workers.engine import BatchEvents, WorkerListener, WorkerSpec
from tsctl.daemon.workers.local import LocalWorker
from tsctl.daemon.workers.processes.output import Output, Pace
from tsctl.daemon.workers.processes.reaper import Children, Process
from tsctl.daemon.workers.processes.spawn import Pipes, SpawnRequest, execute, open_channels
from tsctl.daemon.workers.processes.templates.tree import follow
from tsctl.handlers.orders import Fork
from tsctl.handlers.ray import messages
from tsctl.handlers.ray.messages import ActorOptions

_log = logging.getLogger("tsctl.daemon.workers")

MODULE = "tsctl.handlers.ray.bridge"
GONE = "the bridge to Ray has ended"

# Starts the bridge with its end of the socket and of its output; returns its process.
Starter = Callable[[socket.socket, Pipes, Callable[[], None]], Process]


class RemoteProcess(Process):
    """A worker's process on a node, as the bridge reports it."""

    def __init__(self, pid: int, node: str, kill: Callable[[], None]) -> None:
        super().__init__(pid)
        self.node = node
        self._kill = kill

    def kill(self) -> None:
        if self.returncode is None:
            self._kill()

    def suspend(self) -> bool:
        return False

    def resume(self) -> None:
        """Do nothing: the process was not stopped."""


class Bridge:
    """The bridge's process, and the workers that were ordered of it.

    Attributes:
        pace, groups: as in `Templates`; a worker on a node has no cgroup of this machine.

    Args:
        address: of the cluster.
        variables: environment variables of the workers.
        start: starts the bridge.
    """

    groups = None

    def __init__(
        self,
        address: str,
        variables: Mapping[str, str],
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        start: Starter,
    ) -> None:
        self.pace = Pace()
        self._address = address
        self._variables = dict(variables)
        self._loop = loop
        self._clock = clock
        self._start = start
        self._number = 0
        self._ordered: dict[int, SpawnRequest] = {}
        self._born: dict[int, RemoteProcess] = {}
        self._process: Process | None = None
        self._socket: socket.socket | None = None

    def __repr__(self) -> str:
        return f"<Bridge to {self._address}, {'runs' if self._socket else 'none'}, {len(self._ordered)} workers>"

    def make(self, spec: WorkerSpec, request: SpawnRequest) -> None:
        """Make a worker; `request` is notified.

        Raises:
            OSError: the bridge cannot be started, or takes no order.
        """
        assert isinstance(spec.own, messages.ActorOptions) and isinstance(request.order, Fork)
        if self._socket is None:
            self._open()
        assert self._socket is not None
        self._number += 1
        order = messages.StartRemote(
            self._number, f"{spec.model_name}/{spec.model_version}", request.order.directory, spec.own,
            request.order.threads, self._variables,
        )  # fmt: skip
        try:
            socket.send_fds(self._socket, [messages.encode(order)], [request.socket.fileno(), *request.output])
        finally:
            request.close()
        self._ordered[self._number] = request
        request.waits = f"the bridge has reported nothing from Ray at {self._address} yet"

    def cancel(self, request: SpawnRequest) -> None:
        """End a worker that has no process yet."""
        request.cancelled = True
        for number, each in self._ordered.items():
            if each is request:
                self._send(messages.KillRemote(number))

    def done_with(self, home: None) -> None:
        """Do nothing: workers of a cluster share no template."""

    def close(self) -> None:
        """End the bridge, and with it its workers."""
        self._hung_up("the daemon stops")

    def _open(self) -> None:
        ours, theirs, reading, writing = open_channels(socket.SOCK_SEQPACKET)
        output = Output(_tell, lambda: None, self._clock, self.pace)
        follow(self._loop, output, reading)
        try:
            process = self._start(theirs, writing, lambda: self._ended(process))
            output.born(process.pid)
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
            writing.close()
        _log.info("started a bridge to Ray at %s, pid %d", self._address, process.pid)
        self._process, self._socket = process, ours
        ours.setblocking(False)
        self._loop.add_reader(ours.fileno(), self._read)
        self._send(messages.Connect(self._address))

    def _send(self, order: messages.BridgeOrder) -> None:
        if self._socket is not None:
            try:
                self._socket.send(messages.encode(order))
            except OSError as error:
                self._hung_up(f"it takes no orders ({error.strerror})")

    def _read(self) -> None:
        assert self._socket is not None
        try:
            packet = self._socket.recv(messages.LARGEST)
        except BlockingIOError:
            return
        except OSError:
            packet = b""
        if packet:
            self._heard(messages.decode_report(packet))
        else:
            self._hung_up("it closed its socket")

    def _ended(self, process: Process) -> None:
        if process is self._process:
            code = process.returncode
            self._hung_up(f"killed by signal {-code}" if code is not None and code < 0 else f"exit code {code}")

    def _hung_up(self, why: str) -> None:
        """Note that there is no bridge any more, nor any of its workers."""
        if self._socket is None:
            return
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
        process, self._socket, self._process = self._process, None, None
        if process is not None:
            process.kill()
        if self._ordered:
            _log.warning("the bridge to Ray has gone with %d workers: %s", len(self._ordered), why)
        for number in list(self._ordered):
            self._heard(messages.RemoteEnded(number, -1, f"{GONE} ({why})"))

    def _heard(self, report: messages.BridgeReport) -> None:
        number = report.number
        request = self._ordered.get(number)
        if request is None:
            return
        match report:
            case messages.Waits():
                request.waits = report.reason
            case messages.Placed():
                request.waits = ""
                self._born[number] = process = RemoteProcess(
                    report.pid, report.node, lambda: self._send(messages.KillRemote(number))
                )
                if request.cancelled:
                    process.kill()
                else:
                    request.born(process)
            case messages.RemoteEnded():
                del self._ordered[number]
                born = self._born.pop(number, None)
                if born is not None:
                    born.lost, born.returncode = report.lost, report.code
                    request.ended()
                elif not request.cancelled:
                    request.failed(report.lost or request.waits or f"exit code {report.code}")


def starter_of(children: Children, environment: Mapping[str, str], spare: Callable[[int], None]) -> Starter:
    """Return a function that starts the bridge as a child process.

    Args:
        spare: called with its pid, which is no worker's.
    """

    def start(sock: socket.socket, output: Pipes, ended: Callable[[], None]) -> Process:
        started = execute(MODULE, sock, output, environment)
        spare(started.pid)
        return children.watch_child(started.pid, ended, started.wait)

    return start


def bridge_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the bridge, which runs no model."""
    return {name: value for name, value in environment.items() if not name.startswith("TSCTL_")}


def _tell(lines: str, pid: int, stream: str) -> None:  # noqa: ARG001 - an OutputLog
    for line in lines.split("\n"):
        _log.info("ray: %s", line)


class RayEngine:
    """Starts workers on the nodes of a cluster. Nothing is started before the first worker.

    Args:
        address: of the cluster.
        environment: of workers on this machine; nodes get the variables of the daemon's settings.
        spare: called with the pid of each bridge.
    """

    def __init__(
        self,
        address: str,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        environment: Mapping[str, str],
        spare: Callable[[int], None],
    ) -> None:
        self._loop, self._clock = loop, clock
        self._children = Children(loop, clock)
        variables = {name: value for name, value in environment.items() if name.startswith("TS_")}
        start = starter_of(self._children, bridge_environment(os.environ), spare)
        self._bridge = Bridge(address, variables, loop, clock, start)

    def start_worker(self, spec: WorkerSpec, events: WorkerListener, batches: BatchEvents) -> LocalWorker:
        return LocalWorker(spec, events, batches, self._loop, self._clock, self._bridge, None)

    def close(self) -> None:
        """End the bridge, and all workers on the cluster."""
        self._bridge.close()
        self._children.kill_leftovers()


# The settings that workers on nodes do not have, and what to do about each; other extensions' are among them.
_REFUSED = {
    "sequences": "`sequenceBatching`: remove it, or run the model on this machine",
    "parallel_type": "`parallelType`: remove it, or run the model on this machine",
    "max_memory": "`maxMemory`: reserve memory by `ray: {resources: …}`, or run the model on this machine",
    "cpus": "`cpus`, which are this machine's: name `num_cpus` in `ray:`",
    "device_ids": "`deviceIds`, which are this machine's: name `num_gpus` in `ray:`",
}


def check_cluster(config: Config) -> str:
    """Return the address of the daemon's cluster.

    Raises:
        BadRequest: the daemon has none, or the package ray is missing.
    """
    if config.ray_address is None:
        raise BadRequest("engine is ray, but this daemon has no Ray cluster: start it with `--ray-address HOST:PORT`.")
    if find_spec("ray") is None:
        raise BadRequest(
            "engine is ray, but the package ray is not installed: `pip install 'tsctl[ray]'`, in the same version as on"
            " the cluster."
        )
    return str(config.ray_address)


def actor_options_of(settings: ModelSettings, spec: WorkerSpec) -> ActorOptions:
    """Return what a worker takes of its node.

    Raises:
        InvalidModel: the settings ask for something that workers on nodes do not have.
    """
    refused = {
        "a directory or a file, which may change while it is served: pack it with `tsctl archive`": spec.in_place,
        "requirements of its own: install them on the nodes, and start the daemon without `--install-requirements`":
            spec.python is not None,
        "`continuousBatching` or `asyncCommunication`: remove it, or run the model on this machine":
            spec.mode != "batch",
    } | {what: bool(vars(settings).get(name)) for name, what in _REFUSED.items()}  # fmt: skip
    for what, asked in refused.items():
        if asked:
            raise InvalidModel(f"Workers on a Ray cluster do not take {what}.")
    return ActorOptions(**(settings.ray or {}))


def engine_at(address: str, config: Config, clock: Clock, spare: Callable[[int], None]) -> RayEngine:
    """Return the engine of a cluster, on the loop that runs; `spare` as in `Kernel`."""
    return RayEngine(address, asyncio.get_running_loop(), clock, model_environment(os.environ, config), spare)
