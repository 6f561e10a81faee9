"""One run's world: the daemon's objects on the virtual loop, and the record of their behaviour."""

import asyncio
import contextlib
import functools
import random
import traceback
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tests.lab.simulation.engine import Engine, WatchedWorker
from tests.lab.simulation.ledger import Entry, Served
from tests.lab.simulation.loop import Call, VirtualLoop, no_space
from tests.lab.simulation.memory import Memory
from tests.lab.simulation.modes import with_mode, words_of
from tests.lab.simulation.plan import Plan, draw_settings
from tests.lab.simulation.process import Process
from tests.lab.simulation.sequences import SequenceBook
from tests.lab.simulation.story import Failure, Story
from tests.lab.simulation.streams import Reader
from tests.lab.simulation.suspicion import note_parked
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
from tsctl.daemon.metrics.version import VersionMetrics
from tsctl.daemon.models.archives.opening import Archives, Contents, Progress
from tsctl.daemon.models.build import ArchiveTexts, ModelFactory
from tsctl.daemon.models.registrar import Registrar
from tsctl.daemon.models.registry import LiveVersions, Registry
from tsctl.daemon.models.request import Registration, Source
from tsctl.daemon.models.request_path import Resources
from tsctl.daemon.models.settings import ModelSettings
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.cores import Placement
from tsctl.handlers import wire

T = TypeVar("T")
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
    """Production's live versions; the world is told who comes and who has gone."""

    def __init__(self, world: "World") -> None:
        super().__init__(world.registry, world.metrics)
        self._world = world

    def add(self, model: ModelVersion) -> None:
        super().add(model)
        self._world.registered(model)

    def gone(self, model: ModelVersion) -> None:
        super().gone(model)
        self._world.retired(model)


class SimulatedRegistration(Registrar):
    """Production's registration with a simulated source."""

    def __init__(self, world: "World") -> None:
        config = _config(world.plan.grace)
        logs = ModelLogs(partial(paths.model_log, config.state_dir), foreground=False)
        super().__init__(
            config, world.registry, Engine(world), world.loop, logs, world.metrics, live=WatchedVersions(world)
        )
        self.archives = SimulatedArchives(config, self.directories)
        self.factory = SimulatedFactory(world)


class MarkingClock:
    """The loop's clock for one version; marks the version dirty on every event.

    Attributes:
        timers: those that may still be armed.
    """

    def __init__(self, loop: VirtualLoop) -> None:
        self.served: Served = None  # type: ignore[assignment]  # assigned later: the model needs the clock first
        self.now = loop.now
        self.timers: list[Call] = []
        self._loop = loop

    def soon(self, call: Callable[[], None]) -> None:
        self.served.dirty = True
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
        self.served.dirty = True
        call()

    def _marked_with(self, then: Callable[[T], None], result: T) -> None:
        self.served.dirty = True
        then(result)
        note_parked(self.served)


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

    def __init__(self, plan: Plan, story: Story | None = None) -> None:
        self.plan = plan
        self.chance = random.Random(f"world {plan.seed}")
        self.loop = VirtualLoop(self._escaped)  # type: ignore[abstract]  # only the needed part of a loop
        self.loop.disk = self._write
        self.loop.connect = self._connect
        self.loop.pipe = self._pipe
        self.story = story
        self.failure: Failure | None = None
        self.healed = False
        self.own_handle = plan.own_handle
        self.processes: list[Process] = []
        self.served: list[Served] = []
        self.entries: dict[str, Entry] = {}
        self.readers: dict[str, Reader] = {}
        self.jobs: list[Job] = []
        self.disk_full_until = self.longest = 0.0
        self.placement = Placement(_GPUS)
        self.disk: bytes | None = None
        self.memory = Memory()
        self.registry, self.metrics = Registry(), Metrics()
        self.registrar = SimulatedRegistration(self)
        self._outputs: list[Any] = []
        self._began = self.loop.now()

    # Notes and failures.

    def note(self, text: str, *values: Any) -> None:
        """Add a line to the story, if there is one."""
        if self.story is not None:
            self.story.note(self.loop.now() - self._began, text % values)

    def broken(self, invariant: str, **values: Any) -> None:
        """Record a broken invariant; only the first one counts."""
        if self.failure is None:
            self.failure = Failure(self.plan.seed, invariant, self.loop.now() - self._began,
                                   {name: repr(value) for name, value in values.items()})  # fmt: skip

    def _escaped(self, error: BaseException) -> None:
        trace = "".join(traceback.format_exception(error))
        self.broken("no exception escapes", error=error, trace=trace)

    def retry(self, served: Served) -> bool:
        """Return whether a handler may see a request of a version again."""
        retry = served.model.settings.retry
        if served.sequences is not None:
            return False  # the request may have changed the sequence's state
        return not self.own_handle if retry is None else retry

    def close(self) -> None:
        """Release the descriptors and tasks of an aborted run."""
        self.loop.close()
        for process in self.processes:
            process.close()

    # The registration's interface.

    def make(self, request: Registration, manifest: Manifest) -> Served:
        """Make a model as from its archive."""
        settings = self.settings_of(manifest.model_name, manifest.model_version)
        settings = settings.changed({"quarantine": self.plan.quarantine}, "set")
        if any(served.key == (manifest.model_name, manifest.model_version) for served in self.served):
            settings = with_mode(settings, self.plan.seed, f"archive {len(self.served)}")
        engine, clock = Engine(self), MarkingClock(self.loop)
        source = Source(request.url, Path(_NOWHERE), None, manifest, {})
        served = engine.served = clock.served = Served(len(self.served) + 1)
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

    def settings_of(self, name: str, version: str) -> ModelSettings:
        for model in self.plan.models:
            if model[:2] == (name, version):
                return model[2]
        return draw_settings(self.chance)

    def registered(self, model: ModelVersion) -> None:
        served = self.served_of(model)
        self.note("%r is registered: %s", served, words_of(served.model.settings))

    def retired(self, model: ModelVersion) -> None:
        served, clock = self.served_of(model), model.clock
        served.dirty = True
        served.retired = model.pool.empty
        assert isinstance(clock, MarkingClock)
        armed = [timer for timer in clock.timers if timer.armed]
        if served.retired and armed:
            self.broken("no timer is left of a version that has gone", served=served, armed=armed)
        self.note("%r has gone%s", served, "" if served.retired else ", but for a worker")

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

    def _write(self, call: Callable[..., Any]) -> float:
        """Write the snapshot, in a thread."""
        if self.loop.now() < self.disk_full_until:
            self.note("the disk is full")
            raise no_space()
        content = call.args[-1] if isinstance(call, functools.partial) else None
        assert isinstance(content, bytes)
        self.disk = content
        return self.chance.uniform(0.001, 0.02)

    def _pipe(self, protocol: Any) -> None:
        self._outputs.append(protocol)

    def _connect(self, protocol: Any) -> asyncio.Transport:
        assert isinstance(protocol, WatchedWorker)
        outputs, self._outputs = self._outputs, []
        return protocol.process.connected(protocol, outputs)


def counted(metrics: VersionMetrics) -> dict[str, int]:
    """Return the counts in a version's metrics, of this registration and those before."""
    return {
        "requests": metrics.named.requests + metrics.unnamed.requests,
        "batches": metrics.batches.total(),
        "refused as suspects": metrics.refusals["quarantined"],
        "expired in the queue": metrics.expirations["queue"],
        "expired with a worker": metrics.expirations["worker"],
    }
