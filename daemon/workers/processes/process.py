"""One worker's process, from its creation to the report of its exit.

A `WorkerProcess` is over when the process has ended, and its frames and output have been read to the end; or
`LAST_WORDS` seconds after the process's end, if a child holds one of the two open. The seconds are counted in turns of
the loop, each of which reads what has come: a daemon that got no processor meanwhile must not lose the last lines.
"""

import asyncio
import signal
import socket
from collections.abc import Callable
from functools import partial

from tsctl.daemon.core.arena import Arena
from tsctl.daemon.core.clock import Clock, Timer
from tsctl.daemon.workers.engine import STOPPED, UNREACHABLE, Exit, WorkerSpec
from tsctl.daemon.workers.frames import share
from tsctl.daemon.workers.processes.output import Output, connect
from tsctl.daemon.workers.processes.reaper import Process
from tsctl.daemon.workers.processes.spawn import Pipes, ProcessSource, SpawnRequest, open_channels
from tsctl.handlers import orders, wire
from tsctl.handlers.texts.signals import signal_name

LAST_WORDS = 0.1  # seconds
TURNS = 10


class WorkerProcess:
    """One process and its channels: a socket for frames, and pipes for its output.

    Attributes:
        killed_because: why the daemon killed the process; empty if not.
        group: the directory of the process's cgroup; empty for none.

    Args:
        protocol: gets the daemon's end of the socket, and calls `socket_closed` when that has closed.
        over: called once, last.
        arena: shared with the process, by the first bytes on the socket.

    Raises:
        OSError: there is no process or descriptor left.
    """

    def __init__(
        self,
        spec: WorkerSpec,
        protocol: asyncio.Protocol,
        source: ProcessSource,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        over: Callable[[Exit], None],
        arena: Arena | None = None,
    ) -> None:
        self.killed_because = ""
        self._killed_kind = STOPPED
        self._member_lost: wire.MemberLost | None = None
        self._gpu_lost: wire.GpuLost | None = None
        self._clock = clock
        self._source = source
        self._tell_over = over
        self._is_over = False
        self._socket_closed = False
        self._timer: Timer | None = None
        self._process: Process | None = None
        self.pid = 0
        self._output = Output(spec.log, self._maybe_over, clock, source.pace)
        ours, theirs, reading, writing = open_channels()
        order = orders.Fork(spec.threads, str(spec.model_dir))
        self._request = SpawnRequest(order, theirs, writing, self._born, self._not_born, self._ended, spec.python)
        try:
            share(ours, arena)
            self._home = source.make(spec, self._request)
        except BaseException:
            ours.close()
            reading.close()
            raise
        self._groups = source.groups
        self.group = "" if self._groups is None else self._groups.make()
        self._connecting = loop.create_task(self._connect(loop, protocol, ours, reading))

    @property
    def node(self) -> str:
        """The node of a cluster that the process runs on; empty for this machine."""
        return "" if self._process is None else self._process.node

    @property
    def waits(self) -> str:
        """Why there is no process yet, in words; empty if unknown."""
        return self._request.waits

    @property
    def running(self) -> bool:
        """Whether the process has not ended, as far as is known."""
        return self._process is None or self._process.returncode is None

    @property
    def died_of_sigkill(self) -> bool:
        """Whether the process, or another of its group, was killed from outside the daemon, perhaps by the kernel."""
        if self._member_lost is not None and self._member_lost.killed:
            return not self.killed_because
        ended_by = None if self._process is None or self._process.lost else self._process.returncode
        return ended_by == -signal.SIGKILL and not self.killed_because

    def member_lost(self, lost: wire.MemberLost) -> None:
        """Note why the process is about to exit."""
        self._member_lost = lost

    def gpu_lost(self, lost: wire.GpuLost) -> None:
        """Note why the process is about to exit."""
        self._gpu_lost = lost

    def kill(self, because: str, kind: str = STOPPED) -> None:
        """Kill the process and its children; the first reason, and its kind of `ENDS`, are the reported ones."""
        if self._is_over:
            return
        if not self.killed_because:
            self._killed_kind = kind
        self.killed_because = self.killed_because or because
        if self._process is not None:
            self._process.kill()
        else:
            self._source.cancel(self._request)
            self._clock.soon(self._over)

    def suspend(self) -> bool:
        """Stop the process, until `resume`; return whether there is one on this machine."""
        return self._process is not None and self._process.suspend()

    def resume(self) -> None:
        if self._process is not None:
            self._process.resume()

    def socket_closed(self) -> None:
        """Note that the socket has closed: a mere hint that the process has ended."""
        self._socket_closed = True
        self._maybe_over()

    async def _connect(
        self, loop: asyncio.AbstractEventLoop, protocol: asyncio.Protocol, ours: socket.socket, reading: Pipes
    ) -> None:
        await self._output.connect(loop, *reading)
        await connect(loop, lambda: protocol, ours)

    def _born(self, process: Process) -> None:
        self._process, self.pid = process, process.pid
        self._output.born(process.pid)

    def _not_born(self, reason: str) -> None:
        self.killed_because = f"its process cannot be made: {reason}"
        self._clock.soon(self._over)

    def _ended(self) -> None:
        self._leave_group()
        self._wait_on(TURNS)
        self._maybe_over()

    def _wait_on(self, turns: int) -> None:
        if turns:
            self._output.hurry()
            self._timer = self._clock.later(LAST_WORDS / TURNS, partial(self._wait_on, turns - 1))
        else:
            self._over()

    def _maybe_over(self) -> None:
        ended = self._process is not None and self._process.returncode is not None
        if ended and self._socket_closed and self._output.closed:
            self._over()

    def _over(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        self._leave_group()
        if self._timer is not None:
            self._timer.cancel()
        if self._home is not None:
            self._source.done_with(self._home)
        self._tell_over(self._report())

    def _leave_group(self) -> None:
        """Kill the rest of the worker's cgroup, once."""
        if self._groups is not None:
            self._groups.kill(self.group)
            self._groups = None

    def _report(self) -> Exit:
        last = tuple(self._output.last)
        code = None if self._process is None else self._process.returncode
        if self._process is None:
            return Exit(None, self.killed_because, last, kind=self._killed_kind)
        if self.killed_because:
            return Exit(None, f"killed: {self.killed_because}", last, kind=self._killed_kind)
        if self._process.lost:
            return Exit(None, self._process.lost, last, kind=UNREACHABLE)
        if code is not None and code < 0:
            name = signal_name(-code)
            hint = " (perhaps by the kernel, out of memory)" if name == "SIGKILL" else ""
            from_outside = name == "SIGKILL"
            kind = "killed" if from_outside else "signal"
            return Exit(None, f"killed by {name}{hint}", last, crashed=not from_outside, kind=kind)
        if code == wire.EXIT_MEMBER_LOST and self._member_lost is not None:
            lost = self._member_lost
            return Exit(code, lost.reason, last, crashed=not lost.killed, kind="killed" if lost.killed else "code")
        if code == wire.EXIT_GPU_LOST and self._gpu_lost is not None:
            return Exit(code, self._gpu_lost.reason, last, crashed=True, kind="gpu")
        if code == wire.EXIT_DISCONNECTED:
            return Exit(code, "its handler closed its connection to the daemon", last, crashed=True, kind="protocol")
        return Exit(code, f"it exited with code {code}", last, crashed=True, kind="code")
