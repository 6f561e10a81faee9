"""One run's world: the daemon's objects on the virtual loop, and the record of their behaviour."""

import asyncio
import contextlib
import errno
import functools
import os
import random
import re
import traceback
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tests.lab.simulation.clients import Reader
from tests.lab.simulation.engine import Engine, WatchedWorker
from tests.lab.simulation.ledger import Entry, Served, note_parked
from tests.lab.simulation.loop import Call, VirtualLoop
from tests.lab.simulation.memory import SIZE, Memory
from tests.lab.simulation.plan import Plan, with_mode, words_of
from tests.lab.simulation.process import Process
from tests.lab.simulation.sequences import SequenceBook
from tsctl.daemon import paths
from tsctl.daemon.config.config import Config, resolve
from tsctl.daemon.core.clock import Timer
from tsctl.daemon.core.job import Job
from tsctl.daemon.core.logs import ModelLogs
from tsctl.daemon.extensions.quarantine.service import quarantine_of, watch_for_suspects
from tsctl.daemon.extensions.sequences.marks import USUAL
from tsctl.daemon.extensions.sequences.service import open_sequences
from tsctl.daemon.marfile import Manifest, parse_manifest
from tsctl.daemon.metrics.metrics import Metrics
from tsctl.daemon.models.archives.opening import Archives, Contents, Progress
from tsctl.daemon.models.build import ArchiveTexts, ModelFactory
from tsctl.daemon.models.registrar import Registrar
from tsctl.daemon.models.registry import LiveVersions, Registry
from tsctl.daemon.models.request import Registration, Source
from tsctl.daemon.models.request_path import Resources
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.cores import Placement
from tsctl.handlers import wire

T = TypeVar("T")
_MADE = re.compile(r"ts-seq-[0-9a-f-]{36}")  # an id that the daemon makes; each run has others
_GPUS = 2
_NOWHERE = "/nonexistent/simulated"


@functools.cache
def _config(grace: float) -> Config:
    return resolve({"state_dir": _NOWHERE, "socket": f"{_NOWHERE}/socket", "grace": str(grace)}, {})


class SimulatedArchives(Archives):
    """Nothing is downloaded or unpacked."""

    @contextlib.asynccontextmanager
    async def open(self, request: Registration, progress: Progress) -> AsyncIterator[Contents]:
        yield Contents(Path(_NOWHERE))


class SimulatedFactory(ModelFactory):
    """Makes the world's models; nothing is read."""

    def __init__(self, world: "World") -> None:
        self._world = world

    async def read(self, request: Registration, directory: Path) -> ArchiveTexts:
        name, version = request.url.split("/")
        document = {"model": {"modelName": name, "modelVersion": version, "handler": "h.py"}}
        return ArchiveTexts(parse_manifest(document), {})

    async def install(self, manifest: Manifest, directory: Path, progress: Progress) -> None:
        """Install nothing."""

    def build(self, request: Registration, texts: ArchiveTexts, *source: Any, **further: Any) -> ModelVersion:
        return self._world.make(request, texts.manifest).model


class WatchedVersions(LiveVersions):
    """Production's live versions; it is checked who has gone."""

    def __init__(self, world: "World") -> None:
        super().__init__(world.registry, world.metrics)
        self._world = world

    def add(self, model: ModelVersion) -> None:
        super().add(model)
        self._world.note("%r is registered: %s", self._world.served_of(model), words_of(model.settings))

    def gone(self, model: ModelVersion) -> None:
        super().gone(model)
        world, served, clock = self._world, self._world.served_of(model), model.clock
        served.dirty = True
        served.retired = model.pool.empty
        assert isinstance(clock, MarkingClock)
        armed = [timer for timer in clock.timers if timer.armed]
        if served.retired and armed:
            world.broken("no timer is left of a version that has gone", served=served, armed=armed)
        world.note("%r has gone%s", served, "" if served.retired else ", but for a worker")


class SimulatedRegistration(Registrar):
    """Production's registration with a simulated source."""

    def __init__(self, world: "World") -> None:
        config = _config(world.plan.grace)
        logs = ModelLogs(partial(paths.model_log, config.state_dir), foreground=False)
        engine = Engine(world, Served(0))  # starts nothing: each version has its own
        super().__init__(config, world.registry, engine, world.loop, logs, world.metrics, live=WatchedVersions(world))
        self.archives = SimulatedArchives(config, self.directories)
        self.factory = SimulatedFactory(world)


class MarkingClock:
    """The loop's clock for one version; marks the version dirty on every event.

    Attributes:
        timers: those that may still be armed.
    """

    def __init__(self, loop: VirtualLoop, served: Served) -> None:
        self.now = loop.now
        self.timers: list[Call] = []
        self._loop = loop
        self._served = served

    def soon(self, call: Callable[[], None]) -> None:
        self._served.dirty = True
        self._loop.soon(call)

    def later(self, delay: float, call: Callable[[], None]) -> Timer:
        timer = self._loop.later(delay, functools.partial(self._marked, call))
        if len(self.timers) > 8:
            self.timers = [each for each in self.timers if each.armed]
        self.timers.append(timer)
        return timer

    def aside(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        self._loop.aside(work, functools.partial(self._marked_with, then))

    def _marked(self, call: Callable[[], None]) -> None:
        self._served.dirty = True
        call()

    def _marked_with(self, then: Callable[[T], None], result: T) -> None:
        self._served.dirty = True
        then(result)
        note_parked(self._served)


@dataclass(frozen=True, slots=True)
class Failure:
    """A broken invariant, with the second of the run and the values."""

    seed: int
    invariant: str
    at: float
    values: dict[str, str]

    def __str__(self) -> str:
        values = [f"    {name}: {text}" for name, text in self.values.items()]
        return "\n".join([f"seed {self.seed} at {self.at:.4f} s: it does not hold that {self.invariant}", *values])


class World:
    """The parts of a run.

    Attributes:
        chance: the random numbers of clients, operators and daemon faults; each process has its own.
        healed: the faults have ceased.
        longest: the seconds of the longest answered batch.
        placement: worker → device.
        entries: every accepted request that has not been forgotten, by name.
        readers: the clients of streamed responses, by the request's name.
        failure: the first broken invariant.
        disk: the content of the snapshot; None before the first write.
        memory: the arena for large bodies.
    """

    def __init__(self, plan: Plan, story: list[str] | None = None) -> None:
        self.plan = plan
        self.chance = random.Random(f"world {plan.seed}")
        self.loop = VirtualLoop(self)  # type: ignore[abstract]  # only the needed part of a loop
        self.story = story
        self.failure: Failure | None = None
        self.healed = False
        self.processes: list[Process] = []
        self.served: list[Served] = []
        self.entries: dict[str, Entry] = {}
        self.readers: dict[str, Reader] = {}
        self.jobs: list[Job] = []
        self.disk_full_until = self.longest = 0.0
        self.placement = Placement(_GPUS)
        self.disk: bytes | None = None
        self.memory = Memory(SIZE)
        self.registry, self.metrics = Registry(), Metrics()
        self.registrar = SimulatedRegistration(self)
        self._outputs: list[Any] = []
        self._began = self.loop.now()

    # Notes and failures.

    def note(self, text: str, *values: Any) -> None:
        """Add a line to the story, if there is one."""
        if self.story is not None:
            self.story.append(f"{self.loop.now() - self._began:10.4f}  {_MADE.sub('ts-seq-…', text % values)}")

    def broken(self, invariant: str, **values: Any) -> None:
        """Record a broken invariant; only the first one counts."""
        if self.failure is None:
            self.failure = Failure(self.plan.seed, invariant, self.loop.now() - self._began,
                                   {name: repr(value) for name, value in values.items()})  # fmt: skip

    def escaped(self, error: BaseException) -> None:
        trace = "".join(traceback.format_exception(error))
        self.broken("no exception escapes", error=error, trace=trace)

    def retry(self, served: Served) -> bool:
        """Return whether a handler may see a request of a version again."""
        retry = served.model.settings.retry
        if served.sequences is not None:
            return False  # the request may have changed the sequence's state
        return not self.plan.own_handle if retry is None else retry

    def close(self) -> None:
        """Release the descriptors and tasks of an aborted run."""
        self.loop.close()
        for process in self.processes:
            process.close()

    # The registration's interface.

    def make(self, request: Registration, manifest: Manifest) -> Served:
        """Make a model as from its archive."""
        key = manifest.model_name, manifest.model_version
        (settings,) = (settings for name, version, settings in self.plan.models if (name, version) == key)
        if any(served.key == key for served in self.served):
            settings = with_mode(settings, self.plan.seed, f"archive {len(self.served)}")
        served = Served(len(self.served) + 1)
        source = Source(request.url, Path(_NOWHERE), None, manifest, {})
        engine, clock = Engine(self, served), MarkingClock(self.loop, served)
        resources = Resources(engine=engine, clock=clock, cores=4, placement=self.placement)
        served.model = model = ModelVersion(source, settings, resources, request=request)

        def follow() -> None:
            open_sequences(model, USUAL)
            watch_for_suspects(model)

        model.tell_services = follow
        follow()
        served.suspecting = quarantine_of(served.model)
        served.made = settings
        served.timeouts.add(settings.response_timeout)
        if settings.sequences:
            served.sequences = SequenceBook(self, served)
        if self.plan.aside and served.suspecting is not None:
            served.suspecting.at_once = -1
        self.served.append(served)
        return served

    def served_of(self, model: ModelVersion) -> Served:
        return next(served for served in reversed(self.served) if served.model is model)

    # Events of workers and requests.

    def began(self, process: Process, batch: wire.Predict) -> None:
        """Record that a process starts a batch."""
        self.note("%r: begins %d", process, batch.batch)
        for row in batch.rows:
            entry = self.entries.get(row.id)
            if entry is None:
                continue  # expired or abandoned
            entry.begun += 1
            entry.said, entry.whole = 0, None
            if entry.served.sequences is not None:
                entry.served.sequences.begun(process, entry)
            # A worker that violates the protocol may or may not have started the batch: it is replaced, and nothing is
            # known.
            if entry.begun > (2 if self.retry(entry.served) else 1) and "confused" not in self.plan.faults:
                self.broken("a handler sees a request as often as it may", entry=entry)
            if entry.job.begun:
                self.broken("what was answered in part is not run again", entry=entry)

    def said(self, name: str) -> None:
        """Record that a worker says a piece of a row that runs on its own."""
        entry = self.entries.get(name)
        if entry is not None:
            entry.said += 1

    def finished(self, name: str) -> None:
        """Record that a worker says the end of such a row; no piece follows."""
        entry = self.entries.get(name)
        if entry is not None:
            entry.whole = entry.said

    def wrote(self, process: Process, batch: wire.Predict, seconds: float) -> None:
        self.longest = max(self.longest, seconds)
        self.note("%r: answers %d", process, batch.batch)

    def forget(self, entry: Entry) -> None:
        """Remove an ended request."""
        self.entries.pop(entry.name, None)

    # The loop's callbacks.

    def write(self, call: Callable[..., Any]) -> float:
        """Write the snapshot, in a thread; return the seconds that it takes. Raises: OSError."""
        if self.loop.now() < self.disk_full_until:
            self.note("the disk is full")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        content = call.args[-1] if isinstance(call, functools.partial) else None
        assert isinstance(content, bytes)
        self.disk = content
        return self.chance.uniform(0.001, 0.02)

    def pipe(self, protocol: Any) -> None:
        self._outputs.append(protocol)

    def connect(self, protocol: Any) -> asyncio.Transport:
        assert isinstance(protocol, WatchedWorker)
        outputs, self._outputs = self._outputs, []
        return protocol.process.connected(protocol, outputs)
