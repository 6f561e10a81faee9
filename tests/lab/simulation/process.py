"""A simulated worker process: it sends frames, loads, runs one batch after the other, hangs and dies.

To its WorkerProcess, one object plays the template, the new process and the other end of the socket: the
kernel and handlers/worker.py, with their delays. SIGKILL stops the process at once, but the daemon may learn of the end
later; data written before still arrives. Its last byte, its end and the end of its output come in any order.
"""

import asyncio
import errno
import os
import random
from typing import TYPE_CHECKING, Any

from tests.lab.simulation.rows import RowScript
from tests.lab.simulation.script import SIGKILL, Script
from tsctl.daemon.models.settings import ModelSettings
from tsctl.daemon.workers.engine import WorkerSpec
from tsctl.daemon.workers.processes.output import Pace, PipeReader
from tsctl.daemon.workers.processes.reaper import Process as Child
from tsctl.daemon.workers.processes.spawn import SpawnRequest
from tsctl.handlers import wire
from tsctl.handlers.frame_reader import FrameReader

if TYPE_CHECKING:
    from tests.lab.simulation.engine import WatchedWorker
    from tests.lab.simulation.world import World


class Line(asyncio.Transport):
    """The daemon's end of the socket."""

    def __init__(self, process: "Process", protocol: "WatchedWorker") -> None:
        super().__init__()
        self.closed = False
        self._process = process
        self._protocol = protocol

    def write(self, data: Any) -> None:
        if not self.closed:
            self._process.told(bytes(data))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._process.loop.soon(lambda: self._protocol.connection_lost(None))
            self._process.told(b"")

    def abort(self) -> None:
        self.close()

    def lose(self) -> None:
        """Report that the other end has closed."""
        if not self.closed:
            self._protocol.eof_received()
            self.closed = True
            self._protocol.connection_lost(None)


class Process:
    """One worker process.

    Attributes:
        script: the worker's behaviour.
        made: the settings with which its version was made.
        chance: the process's random numbers.
        users: 1 from the creation until WorkerProcess is done with it.
        pace, groups: as in Templates; the pipe is never full, and there are no cgroups.
        stopped: the process does nothing any more: ended, or about to end.
        rank_killed: it ends because a SIGKILL ended another process of its group, and has said so.
    """

    def __init__(self, world: "World", spec: WorkerSpec, made: ModelSettings, number: int) -> None:
        self.loop = world.loop
        self.number = number
        self.spec = spec
        self.made = made
        self.stopped = self.rank_killed = False
        self.line: Line | None = None
        self.outputs: list[PipeReader] = []
        self.users = 0
        self.pace = Pace()
        self.groups = None
        self._world = world
        self.chance = random.Random(world.plan.seed * 1009 + number)
        self.script = (Script if spec.mode == "batch" else RowScript)(self, world)
        self._faults = {} if world.healed else world.plan.faults
        self._request: SpawnRequest | None = None
        self._child: Child | None = None
        self._reader = FrameReader()
        self._slowest = 0.003 if self.chance.random() < 0.3 else 0.0003  # seconds until the daemon reads a write
        self._last_byte = self._last_told = 0.0

    def __repr__(self) -> str:
        return f"worker {self.number} of {self.spec.model_name}/{self.spec.model_version}"

    @property
    def born(self) -> bool:
        return self._child is not None

    def whether(self, chance: float) -> bool:
        """Draw an event of this probability, unless the faults have ceased."""
        return chance > 0.0 and self.chance.random() < chance and not self._world.healed

    def has(self, fault: str, share: float = 1.0) -> bool:
        """Draw whether a fault of the plan occurs now, in this share of the cases in which it may."""
        return self.whether(self._faults.get(fault, 0.0) * share)

    @property
    def code(self) -> int | None:
        """The exit status, as far as the daemon knows; None before."""
        return None if self._child is None else self._child.returncode

    def close(self) -> None:
        """Close the descriptors meant for the new process."""
        if self._request is not None:
            self._request.close()

    # The templates' interface, used by WorkerProcess.

    def make(self, spec: WorkerSpec, request: SpawnRequest) -> "Process":
        if self.has("refused"):
            request.close()
            self.stopped = True
            self._world.note("%r: no process can be made", self)
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        self._request = request
        self.users = 1
        self.loop.outside(self.chance.uniform(0.0, 0.01), self._born)
        return self

    def cancel(self, request: SpawnRequest) -> None:
        request.cancelled = True
        request.close()
        self.stopped = True

    def done_with(self, home: "Process") -> None:
        self.users -= 1

    def _born(self) -> None:
        request = self._request
        if request is None or request.cancelled:
            return
        request.close()
        if self.has("not_born"):
            self.stopped = True
            self._world.note("%r: is not born", self)
            request.failed("its template has gone")
            return
        self._child = _Child(self)
        request.born(self._child)
        self.loop.outside(self.chance.uniform(0.0, 0.002), self.say, wire.Hello(self.number))

    # Its end.

    def die(self, code: int) -> None:
        """End of itself or by a kill from outside; of a group of processes, either of them may be the one."""
        if not self.stopped and self.spec.group is not None and self.chance.random() < 0.5:
            killed = code == SIGKILL
            self.rank_killed = killed and self.line is not None and not self.line.closed
            self.say(wire.MemberLost(f"rank 1 {'was killed' if killed else 'exited'}", killed))
            code = wire.EXIT_MEMBER_LOST
        self.end(code)

    def end(self, code: int) -> None:
        """Stop at once; the daemon learns of the end a little later."""
        if self.stopped:
            return
        self.stopped = True
        if self.script.busy or code == SIGKILL:
            self._world.note("%r: ends (%s)%r", self, code, self.script)
        slow = self.chance.uniform(0.3, 20.0) if self.has("stubborn") else 0.0001
        self.loop.outside(slow, self._died, code)

    def _died(self, code: int) -> None:
        draw = self.chance.uniform
        held = 5.0 if self.has("held") else 0.0
        whose = self.chance.random() < 0.5
        self.loop.outside(draw(0.0, 0.001), self._reaped, code)
        self.loop.outside(self._after(draw(0.0, 0.001) + (held if whose else 0.0)), self._closed)
        self.loop.outside(draw(0.0, 0.001) + (0.0 if whose else held), self._silent)

    def _reaped(self, code: int) -> None:
        assert self._child is not None and self._request is not None
        self.script.reader.ended()
        self._child.returncode = code
        self._request.ended()

    def _closed(self) -> None:
        if self.line is not None:
            self.line.lose()

    def _silent(self) -> None:
        for output in self.outputs:
            output.connection_lost(None)

    def hang_up(self) -> None:
        """Close the process's end of the socket, and continue."""
        self.loop.outside(self._after(0.0001), self._closed)

    # The socket.

    def connected(self, protocol: "WatchedWorker", outputs: list[PipeReader]) -> Line:
        """Set up socket and output for WorkerProcess; return the socket's transport."""
        self.outputs = outputs
        line = self.line = Line(self, protocol)
        protocol.connection_made(self.line)
        return line

    def told(self, data: bytes) -> None:
        """Queue the daemon's data for the process; empty if the daemon closed its end."""
        now = self.loop.now()
        self._last_told = max(now + self.chance.uniform(0.00003, 0.0002), self._last_told + 1e-6)
        self.loop.outside(self._last_told - now, self._take, data)

    def _take(self, data: bytes) -> None:
        if self.stopped:
            return
        if not data:
            self.script.hear(None)
            return
        for frame in self._reader.feed(data):
            self.script.hear(wire.decode_for_worker(frame))

    def say(self, *messages: wire.ToDaemon) -> None:
        """Write messages at once, unless the process has stopped."""
        if not self.stopped:
            self._write(b"".join(wire.encode(message) for message in messages))

    def _write(self, data: bytes) -> None:
        cut = self.chance.randrange(len(data)) if self.chance.random() < 0.02 else 0
        for part in (data[:cut], data[cut:]) if cut else (data,):
            self.loop.outside(self._after(self.chance.uniform(0.00003, self._slowest)), self._heard, part)

    def _after(self, delay: float) -> float:
        """Return the delay, extended until all earlier data has arrived."""
        now = self.loop.now()
        self._last_byte = max(now + delay, self._last_byte + 1e-6)
        return self._last_byte - now

    def _heard(self, data: bytes) -> None:
        assert self.line is not None  # connected in the turn in which it was born
        if not self.line.closed:
            self.line._protocol.data_received(data)


class _Child(Child):
    """The process as known to the daemon."""

    def __init__(self, process: Process) -> None:
        super().__init__(process.number)
        self._process = process

    def kill(self) -> None:
        if self.returncode is None:
            self._process.end(SIGKILL)
