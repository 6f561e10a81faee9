"""One template as the daemon sees it (handlers/template.py is the process).

    WARMING ──Ready──▶ READY
       │                 │
       └──Unfit, ended───┴──▶ GONE

Births wait while the template warms, and are ordered one at a time. Births still waiting when the template goes are
given back, to be made in another way. An ordered one may have been made without a report,
so that one fails: its descriptors are closed, and the process, if any, exits.
"""

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Callable
from enum import Enum, auto

from tsctl.daemon.workers.processes.reaper import Children, Process
from tsctl.daemon.workers.processes.spawn import SpawnRequest
from tsctl.handlers import orders

_log = logging.getLogger("tsctl.daemon.workers")


LINGER = 10.0  # seconds


class TemplateState(Enum):
    WARMING = auto()  # imports and loads
    READY = auto()  # forks
    GONE = auto()  # ended, or not fit to be forked


class Template:
    """Makes processes by forking a warm one.

    Attributes:
        parent: the template from which this one is forked, None for the first.
        why: why the template has gone.
        never_ready: the template has gone without having been ready.
        users: workers that live, or wait, and share the template's model.
        linger: seconds that the template of a model stays after the last of them.
        unused: how often that time has begun anew.
    """

    def __init__(
        self,
        name: str,
        parent: "Template | None",
        sock: socket.socket,
        loop: asyncio.AbstractEventLoop,
        children: Children,
        give_back: Callable[[SpawnRequest, "Template"], None],
        gone: Callable[["Template"], None],
        told_pid: Callable[[int], None] = lambda pid: None,
    ) -> None:
        self.name = name
        self.parent = parent
        self.state = TemplateState.WARMING
        self.process: Process | None = None
        self.why = ""
        self.never_ready = True
        self.users = self.unused = 0
        self.linger = LINGER
        self._socket = sock
        self._loop = loop
        self._children = children
        self._give_back = give_back
        self._gone = gone
        self._told_pid = told_pid
        self._waiting: deque[SpawnRequest] = deque()
        self._ordered: SpawnRequest | None = None
        self._reads = True
        sock.setblocking(False)
        loop.add_reader(sock.fileno(), self._read)

    def __repr__(self) -> str:
        return f"<Template {self.name} {self.state.name}, {len(self._waiting)} waiting>"

    @property
    def wanted(self) -> bool:
        """Whether a request waits for a process of this template."""
        return self._ordered is not None or any(not request.cancelled for request in self._waiting)

    def make(self, request: SpawnRequest) -> None:
        """Make a process, now or when the template is ready; `request` is notified."""
        if self.state is TemplateState.GONE:
            self._give_back(request, self)
            return
        self._waiting.append(request)
        self._next()

    def born(self, process: Process) -> None:
        """Note that the template's process exists, and warms."""
        self.process = process
        self._told_pid(process.pid)
        if self.state is TemplateState.GONE:
            process.kill()

    def close(self, why: str) -> None:
        """End the template; waiting births are given back."""
        if self.state is TemplateState.GONE:
            return
        self.state, self.why = TemplateState.GONE, why
        if self._reads:
            self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
        if self.process is not None:
            self.process.kill()
        if self._ordered is not None:
            request = self._take_ordered()
            request.close()
            if not request.cancelled:
                request.failed(f"the template that it was to be forked from has gone: {why}")
        self._gone(self)
        while self._waiting:
            self._give_back(self._waiting.popleft(), self)

    def ended(self) -> None:
        """Close the template, whose process has ended."""
        code = None if self.process is None else self.process.returncode
        self.close(f"it ended with code {code}" if code is None or code >= 0 else f"it was killed by signal {-code}")

    def _next(self) -> None:
        while self.state is TemplateState.READY and self._ordered is None and self._waiting:
            request = self._waiting.popleft()
            if request.cancelled:
                request.close()
                continue
            packet = orders.encode(request.order)
            try:
                if len(packet) > orders.LARGEST:
                    raise OSError(f"an order of {len(packet)} bytes is too long")
                socket.send_fds(self._socket, [packet], [request.socket.fileno(), *request.output])
            except OSError:  # the template's end is about to be reported
                self._give_back(request, self)
                continue
            self._ordered = request
            self._children.expected += 1

    def _take_ordered(self) -> SpawnRequest:
        assert self._ordered is not None
        request, self._ordered = self._ordered, None
        self._children.expected -= 1
        return request

    def _read(self) -> None:
        try:
            packet = self._socket.recv(orders.LARGEST)
        except BlockingIOError:
            return
        except OSError:
            packet = b""
        if not packet:
            self._hung_up()
            return
        self._heard(orders.decode_report(packet))

    def _hung_up(self) -> None:
        """Note that the template is ending: the end of its process gives the reason at once."""
        if self.process is None:
            self.close("it closed its socket")
        else:
            self._loop.remove_reader(self._socket.fileno())
            self._reads = False
            self.process.kill()

    def _heard(self, report: orders.Report) -> None:
        match report:
            case orders.Ready(seconds=seconds):
                self.state, self.never_ready = TemplateState.READY, False
                _log.info("the template %s is ready after %.2f s", self.name, seconds)
                self._next()
            case orders.Unfit(reason=reason):
                self.close(reason)
            case orders.Forked(pid=pid):
                self._forked(self._take_ordered(), pid)
                self._next()
            case orders.OrderRefused(reason=reason):
                request = self._take_ordered()
                self._waiting.appendleft(request)
                self.close(reason)

    def _forked(self, request: SpawnRequest, pid: int) -> None:
        request.close()
        try:
            process = self._children.watch_child(pid, request.ended)
        except OSError as error:
            if not request.cancelled:
                request.failed(error.strerror or str(error))
            return
        if request.cancelled:
            process.kill()
        else:
            request.born(process)
