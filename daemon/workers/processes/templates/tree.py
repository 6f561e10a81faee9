"""Choose how a worker is made: from the warmest template that fits, or by exec.

    torch ──▶ torchvision ──▶ a model      each is forked from the one before it
      │            │             │
      └────────────┴─────────────┴──▶ workers

* A model has its own template if its handler is a built-in one, on the CPU: its workers then
  share the weights. The template ends `LINGER` seconds after the last of them.
* Other workers are forked from the template that has imported the modules mentioned in their files.
* A worker with its own Python environment is exec'd; so is one whose files do not mention torch, unless
  the first template has been made for others (with torch it takes 250 MiB).

A worker whose template goes is made from that one's parent, or exec'd. A template that has gone is made anew by the
next worker that needs one, but not within `PAUSE` seconds of having failed to get ready.
"""

import asyncio
import dataclasses
import logging
import socket
from collections.abc import Mapping

from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.logs import OutputLog
from tsctl.daemon.workers.engine import WorkerSpec
from tsctl.daemon.workers.processes.import_scan import fingerprint, is_ours, needs_of
from tsctl.daemon.workers.processes.output import Output, Pace
from tsctl.daemon.workers.processes.reaper import Children
from tsctl.daemon.workers.processes.spawn import (
    Cgroups,
    Pipes,
    SpawnRequest,
    StartedTemplate,
    execute,
    load_of,
    open_channels,
    worker_environment,
)
from tsctl.daemon.workers.processes.templates.template import LINGER as LINGER
from tsctl.daemon.workers.processes.templates.template import Template, TemplateState
from tsctl.handlers import orders

_log = logging.getLogger("tsctl.daemon.workers")

_connecting: set[asyncio.Task[None]] = set()  # a loop alone does not keep its tasks

PAUSE = 60.0  # seconds
FIRST, VISION = "torch", "torchvision"
IMPORTED = ("tsctl.handlers.builtin.image_classifier",)  # by the second, which takes torchvision along


class Templates:
    """All templates of this daemon; without `enabled` there are none, and every worker is exec'd.

    Attributes:
        pace: the turns of all pipes of workers and templates.
        groups: cgroups for workers; None where unavailable.

    Args:
        environment: the base of the environment of templates and workers.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        children: Children,
        environment: Mapping[str, str],
        *,
        enabled: bool,
    ) -> None:
        self.enabled = enabled
        self.pace = Pace()
        self.groups: Cgroups | None = None
        self._loop = loop
        self._clock = clock
        self._children = children
        self._environment = environment
        self._templates: dict[str, Template] = {}
        self._failed_at: dict[str, float] = {}

    def __repr__(self) -> str:
        return f"<Templates {' '.join(f'{each.name}:{each.state.name}' for each in self._templates.values())}>"

    def adopt(self) -> None:
        """Become the parent of the templates' forks."""
        if not self.enabled:
            return
        try:
            self._children.adopt()
        except OSError as error:
            _log.warning("workers are not forked from a template: the kernel says `%s`", error.strerror)
            self.enabled = False

    def use_started(self, started: StartedTemplate) -> None:
        """Use the first template that was started before there was anything else."""
        if not self.enabled:
            started.discard()
            return
        template = self._add(FIRST, None, _tell, started.socket, started.output)
        try:
            template.born(self._children.watch_child(started.process.pid, template.ended, started.process.wait))
        except OSError as error:
            template.close(error.strerror or str(error))

    def warm(self) -> None:
        """Begin to make the first template, before a worker needs one."""
        if self.enabled:
            self._first()

    def close(self) -> None:
        """End all templates; workers are made only by exec from now on."""
        self.enabled = False
        for template in list(self._templates.values()):
            template.close("the daemon stops")

    def make(self, spec: WorkerSpec, request: SpawnRequest) -> Template | None:
        """Make a worker.

        Returns:
            The template whose model the worker will share; call `done_with` when the worker has ended.

        Raises:
            OSError: the worker cannot be exec'd.
        """
        place = self._place(spec)
        if place is None:
            self._execute(request)
            return None
        home = place if place.name not in (FIRST, VISION) else None
        if home is not None:
            home.users += 1
            home.unused += 1
        place.make(request)
        return home

    def cancel(self, request: SpawnRequest) -> None:
        """Cancel a request, and close a model's template that is warming for it alone."""
        request.cancelled = True
        request.close()
        for template in list(self._templates.values()):
            warming = template.state is TemplateState.WARMING
            if warming and template.name not in (FIRST, VISION) and not template.wanted:
                template.close("nobody waits for it any more")

    def done_with(self, home: Template) -> None:
        """Note that a worker that shares a template's model has ended."""
        home.users -= 1
        self._let_go(home)

    def pid_of(self, name: str, version: str) -> int:
        """Return the process id of the template that keeps a version's model; 0 if there is none."""
        home = self._home_of(name, version)
        return 0 if home is None or home.process is None else home.process.pid

    def keep(self, name: str, version: str, seconds: float) -> None:
        """Keep the template of a version's model, if there is one, for so long after its last worker."""
        home = self._home_of(name, version)
        if home is not None:
            home.linger = seconds
            self._let_go(home)

    def _home_of(self, name: str, version: str) -> Template | None:
        """Return the newest template of a version's model: an archive that replaces another one has its own."""
        homes = [home for key, home in self._templates.items() if key.startswith(f"{name}/{version} ")]
        return homes[-1] if homes else None

    def _let_go(self, home: Template) -> None:
        """Close the template of a model when no worker has used it for as long as it is to linger."""
        if home.users or home.state is not TemplateState.READY:
            return
        home.unused += 1
        turn = home.unused

        def close() -> None:
            if not home.users and home.unused == turn:
                home.close("its last worker has ended")

        self._clock.later(home.linger, close)

    def _place(self, spec: WorkerSpec) -> Template | None:
        if not self.enabled or spec.python is not None:
            return None
        needs = needs_of(spec.handler, spec.model_dir)
        place = self._first() if needs.torch else self._templates.get(FIRST)
        if place is None or (place.state is TemplateState.WARMING and not needs.torch):
            return None
        if needs.torchvision:
            place = self._grown(VISION, place, orders.Grow(list(IMPORTED)), _tell) or place
        shared = not spec.gpu_ids and spec.mode == "batch" and spec.group is None
        if shared and is_ours(spec.handler, spec.model_dir):
            # Threads and batch size may change without another template: a worker is sent its own.
            alike = load_of(dataclasses.replace(spec, threads=1, batch_size=1))
            key = f"{spec.model_name}/{spec.model_version} {fingerprint(alike)}"
            place = self._grown(key, place, orders.Grow([], load_of(spec)), spec.log) or place
        return place

    def _first(self) -> Template | None:
        if not self._may_be_made(FIRST):
            return self._templates.get(FIRST)
        try:
            template, theirs, output = self._open(FIRST, None, _tell)
        except OSError as error:
            self._without(FIRST, error)
            return None
        try:
            environment = worker_environment(self._environment, 1)
            started = execute("tsctl.handlers.template", theirs, output, environment)
            template.born(self._children.watch_child(started.pid, template.ended, started.wait))
        except OSError as error:
            template.close(error.strerror or str(error))
            return None
        finally:
            theirs.close()
            output.close()
        return template

    def _grown(self, key: str, parent: Template, order: orders.Grow, log: OutputLog) -> Template | None:
        if not self._may_be_made(key):
            return self._templates.get(key)
        try:
            template, theirs, output = self._open(key, parent, log)
        except OSError as error:
            self._without(key, error)
            return None
        parent.make(SpawnRequest(order, theirs, output, template.born, template.close, template.ended))
        return template if template.state is not TemplateState.GONE else None

    def _may_be_made(self, key: str) -> bool:
        if key in self._templates:
            return False
        failed = self._failed_at.get(key)
        return failed is None or self._clock.now() - failed >= PAUSE

    def _open(self, key: str, parent: Template | None, log: OutputLog) -> tuple[Template, socket.socket, Pipes]:
        """Create the daemon's side of a template; return the template, and the process's ends of its channels."""
        ours, theirs, reading, writing = open_channels(socket.SOCK_SEQPACKET)
        return self._add(key, parent, log, ours, reading), theirs, writing

    def _add(self, key: str, parent: Template | None, log: OutputLog, ours: socket.socket, reading: Pipes) -> Template:
        output = self._follow(log, reading)
        template = Template(key, parent, ours, self._loop, self._children, self._give_back, self._gone, output.born)
        self._templates[key] = template
        return template

    def _follow(self, log: OutputLog, reading: Pipes) -> Output:
        output = Output(log, lambda: None, self._clock, self.pace)
        follow(self._loop, output, reading)
        return output

    def _without(self, key: str, error: OSError) -> None:
        _log.warning("no template %s: %s", key, error.strerror)
        self._failed_at[key] = self._clock.now()

    def _gone(self, template: Template) -> None:
        self._templates.pop(template.name, None)
        if template.never_ready and self.enabled:
            now = self._clock.now()
            self._failed_at = {name: at for name, at in self._failed_at.items() if now - at < PAUSE}
            self._failed_at[template.name] = now
        level = logging.INFO if not self.enabled or template.users or template.parent else logging.WARNING
        _log.log(level, "the template %s has gone: %s", template.name, template.why)

    def _give_back(self, request: SpawnRequest, template: Template) -> None:
        """Make a worker in another way: its template has gone."""
        if request.cancelled:
            request.close()
        elif not isinstance(request.order, orders.Fork) or not self.enabled:
            request.close()
            request.failed(template.why or "its parent could not be told to fork it")
        elif template.parent is not None:
            template.parent.make(request)
        else:
            try:
                self._execute(request)
            except OSError as error:
                request.failed(error.strerror or str(error))

    def _execute(self, request: SpawnRequest) -> None:
        assert isinstance(request.order, orders.Fork)
        threads, directory = request.order.threads, request.order.directory
        environment = worker_environment(self._environment, threads)
        try:
            started = execute(
                "tsctl.handlers.worker", request.socket, request.output, environment, directory, request.python
            )
        finally:
            request.close()
        request.born(self._children.watch_child(started.pid, request.ended, started.wait))


def follow(loop: asyncio.AbstractEventLoop, output: Output, pipes: Pipes) -> None:
    """Log the output of a template."""
    task = loop.create_task(output.connect(loop, *pipes))
    _connecting.add(task)
    task.add_done_callback(_connecting.discard)


def _tell(lines: str, pid: int, stream: str) -> None:  # noqa: ARG001 - an OutputLog
    for line in lines.split("\n"):
        _log.info("template: %s", line)
