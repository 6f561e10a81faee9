"""The default optimisations of a model are timed after the first answer, in a process of their own.

    template ready, untimed ──`AFTER` seconds──▶ a process forked from the template times them with the lowest priority
                                                   │ and keeps the outcomes for later loads
                    all are worth having, or nearly ◀──┴──▶ one is a loss: the template goes, and workers are replaced

Workers are replaced as others are retired: each finishes its batches, and the next one takes the queue.
"""

import logging
import socket
from collections.abc import Callable

from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.logs import OutputLog
from tsctl.daemon.workers.processes.output import Output
from tsctl.daemon.workers.processes.reaper import Process
from tsctl.daemon.workers.processes.spawn import Pipes, SpawnRequest, open_channels
from tsctl.daemon.workers.processes.templates.template import Template, TemplateState
from tsctl.handlers import orders

_log = logging.getLogger("tsctl.daemon.workers")

AFTER = 5.0  # seconds


class DefaultsTiming:
    """Orders templates to time their models.

    Args:
        follow: logs what a process writes.
    """

    def __init__(self, follow: Callable[[OutputLog, Pipes], Output], clock: Clock) -> None:
        self._follow = follow
        self._clock = clock
        self._running: set[Process] = set()

    def plan(self, template: Template, log: OutputLog) -> None:
        """Time a template's model soon."""
        self._clock.later(AFTER, lambda: self._begin(template, log))

    def close(self) -> None:
        """End all processes that time something."""
        for process in self._running:
            process.kill()

    def _begin(self, template: Template, log: OutputLog) -> None:
        if template.state is not TemplateState.READY:
            return
        try:
            ours, theirs, reading, writing = open_channels(socket.SOCK_SEQPACKET)
        except OSError:
            self._end(template, None)  # the next load tries again
            return
        ours.close()
        output = self._follow(log, reading)
        process: Process | None = None

        def born(new: Process) -> None:
            nonlocal process
            process = new
            self._running.add(new)
            output.born(new.pid)

        def ended() -> None:
            assert process is not None
            self._running.discard(process)
            self._end(template, process.returncode)

        template.make(
            SpawnRequest(orders.Time(), theirs, writing, born, lambda reason: self._end(template, None), ended)
        )

    def _end(self, template: Template, code: int | None) -> None:
        calls, template.outdated = template.outdated or (), None
        if code != orders.EXIT_LOAD_ANEW or template.state is not TemplateState.READY:
            return
        _log.info("the template %s: a default optimisation is a loss here, so its workers are replaced", template.name)
        template.close("its model is loaded anew, without an optimisation that is a loss here")
        for call in calls:
            call()
