"""The engine of this machine: starts workers as processes, and ends what is left of them."""

import asyncio
import contextlib
import dataclasses
import os
from collections.abc import Mapping, Sequence

from tsctl.daemon.core.arena import Arena
from tsctl.daemon.core.clock import Clock
from tsctl.daemon.workers.engine import BatchEvents, WorkerListener, WorkerSpec
from tsctl.daemon.workers.local import LocalWorker
from tsctl.daemon.workers.processes.reaper import Children
from tsctl.daemon.workers.processes.spawn import Cgroups, StartedTemplate, base_environment
from tsctl.daemon.workers.processes.templates.tree import Templates
from tsctl.daemon.workers.rows.worker import RowWorker
from tsctl.handlers.wire import Kind


class LocalEngine:
    """Starts worker processes; must be used on the thread of the running loop.

    Args:
        environment: the base of the workers' environment; by default the daemon's own.
        arena: where large values of jobs may be; None for no shared memory.
        template: fork workers from warm processes.
        metrics: the metrics that the operator has declared (see `tsctl.handlers.wire.Load`).
        started: the first template, if its process was started already.
        alone: all of this process's children in other sessions are the engine's: leftovers of workers are killed.

    Attributes:
        templates: the warm processes that workers are forked from.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        environment: Mapping[str, str] | None = None,
        arena: Arena | None = None,
        *,
        template: bool = False,
        metrics: Sequence[tuple[Kind, str, str, list[str]]] = (),
        alone: bool = False,
        started: StartedTemplate | None = None,
    ) -> None:
        self._loop, self._clock, self._arena = loop, clock, arena
        self._metrics = metrics
        self._children = Children(loop, clock)
        surroundings = base_environment(os.environ if environment is None else environment)
        self.templates = Templates(loop, clock, self._children, surroundings, enabled=template)
        self.templates.adopt()
        if started is not None:
            self.templates.use_started(started)
        if alone:
            with contextlib.suppress(OSError):  # the templates have logged it
                self._children.clear_up()
            self.templates.groups = Cgroups.open()

    def warm(self) -> None:
        """Prepare for workers that will be started soon."""
        self.templates.warm()

    def start_worker(self, spec: WorkerSpec, events: WorkerListener, batches: BatchEvents) -> LocalWorker:
        if self._metrics:
            spec = dataclasses.replace(spec, metrics=self._metrics)
        kind = LocalWorker if spec.mode == "batch" else RowWorker
        return kind(spec, events, batches, self._loop, self._clock, self.templates, self._arena)

    def close(self) -> None:
        """End the templates; running workers go on."""
        self.templates.close()
        self._children.close()

    def spare(self, pid: int) -> None:
        """Never kill this child of this process: it is no worker."""
        self._children.spare(pid)

    def handed_over(self) -> None:
        """Note that another daemon has replaced this one."""
        self._children.handed_over()

    def kill_leftovers(self) -> None:
        """Kill all leftovers of workers and templates; nothing may be needed any more."""
        if self.templates.groups is not None:
            self.templates.groups.remove_all()
        self._children.kill_leftovers()
