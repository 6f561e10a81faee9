"""Where workers live: the interface of this room.

An engine starts workers; a worker runs batches and tells its `WorkerEvents` what happens to
it. Everything is a plain call, so the same pool and dispatcher run over processes
(`local.py`), over a fake on a virtual clock (`stub.py`), and later over a cluster.

The order of events for one worker: `loaded` or `load_failed` at most once; then for each `predict`
any number of `streamed` and one `ended`; `lost` at most once; `exited` exactly once, last. A worker that goes
away with batches in hand first ends them, the last sent first, with their jobs returned.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from daemon.job import Batch, Job, Outcome, Reply
from daemon.workers.hand import Hand
from daemon.workers.state import State
from handlers.wire import Isolation, Measurement, Optimized


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSpec:
    """What a worker is to be.

    Attributes:
        handler: as in the manifest: a built-in name, `file.py` or `file.py:function`.
        threads: intra-op threads, set before torch is imported.
        devices: ids of the GPUs its workers may use, empty for the CPU.
        gpu_id: the one that this worker got; None for the CPU.
        startup_timeout, response_timeout: seconds.
        retry: whether a job may run again after a worker died with it; None leaves it to the
            handler: yes where `handle` is ours, no where it is the user's.
        isolate: whether the jobs of a batch for which the handler raised run alone; None as for `retry`.
        max_memory: bytes that it may have (processes/memory.py); None for any number.
        cpus: the processors that it may use, by number; empty for all.
        python: the interpreter; None for the daemon's own.
        optimize: as in ModelSettings.
        log: takes what the worker prints: one or more whole lines, with line feeds between them.
        measured: takes what the handler has measured, whenever it reports something.
        isolated: told of each batch whose jobs ran alone.
    """

    model_name: str
    model_version: str
    model_dir: Path
    handler: str
    manifest: Mapping[str, Any]
    batch_size: int
    startup_timeout: float
    response_timeout: float
    threads: int = 1
    devices: Sequence[int] = ()
    gpu_id: int | None = None
    retry: bool | None = None
    isolate: bool | None = None
    python: Path | None = None
    optimize: Sequence[str] | None = None
    max_memory: int | None = None
    cpus: Sequence[int] = ()
    log: Callable[[str], None] = field(default=lambda line: None)
    measured: Callable[[Sequence[Measurement]], None] = field(default=lambda measurements: None)
    isolated: Callable[[Isolation], None] = field(default=lambda isolation: None)


@dataclass(frozen=True, slots=True)
class LoadFailure:
    """Why a model could not be loaded.

    Attributes:
        error: one line, the exception.
        traceback: the handler's own, may be empty.
        permanent: starting another worker would end the same way.
    """

    error: str
    traceback: str = ""
    permanent: bool = True
    out_of_memory: bool = False


@dataclass(frozen=True, slots=True)
class Exit:
    """How a worker ended.

    Attributes:
        code: exit code, or None if a signal ended it.
        reason: in words, for people.
        output: its last lines, oldest first.
        crashed: it ended of itself: nobody killed it, neither the daemon nor a SIGKILL.
        busy: it had a batch that it had started.
    """

    code: int | None
    reason: str
    output: Sequence[str] = ()
    crashed: bool = False
    busy: bool = False


class Worker(Protocol):
    """One running copy of a model version. Never restarted: the pool replaces it."""

    state: State
    gpu_id: int | None
    answered: bool  # it has answered at least one batch
    started: float  # wall-clock seconds since the epoch
    load_time: float  # seconds from its start until it was ready; 0.0 before
    optimized: Sequence[Optimized]  # what became of its model's optimisations; empty before it was ready

    @property
    def hand(self) -> Hand:
        """The batches that it has, and how many it may have."""

    @property
    def pid(self) -> int:
        """Its process; 0 while that is being made."""

    def predict(self, batch: Batch) -> None:
        """Run a batch after those in hand; it must be READY, and have room for it. Returns at once."""

    def set_threads(self, count: int) -> None:
        """Use this many intra-op threads from the next batch on."""

    def set_limits(self, batch_size: int, response_timeout: float) -> None:
        """Count on batches of this size, and answer them within this many seconds, from the next batch on."""

    def drain(self, grace: float) -> None:
        """Finish what it has, then leave; killed after `grace` seconds, inf for never."""

    def kill(self) -> None:
        """Leave now."""


class WorkerEvents(Protocol):
    """Who hears of a worker: the pool."""

    def loaded(self, worker: Worker) -> None: ...

    def load_failed(self, worker: Worker, failure: LoadFailure) -> None: ...

    def ended(self, worker: Worker, batch: Batch, outcomes: Sequence[Outcome], seconds: float) -> None:
        """One outcome per job of the batch; `seconds` as measured in the worker, 0.0 if it died."""

    def streamed(self, worker: Worker, job: Job, piece: Reply) -> None:
        """A piece of the answer to a job of the worker's batch."""

    def lost(self, worker: Worker) -> None:
        """It can be sent nothing more, and will exit."""

    def exited(self, worker: Worker, how: Exit) -> None: ...


class Engine(Protocol):
    """Somewhere that workers can live: this machine, a cluster, a test."""

    def start_worker(self, spec: WorkerSpec, events: WorkerEvents) -> Worker:
        """Begin to start a worker; raises OSError if that is impossible right away."""


class FreeWorkers(Protocol):
    """What the dispatcher needs to know of a pool."""

    @property
    def idle(self) -> int:
        """Workers that have nothing."""

    @property
    def granting(self) -> int:
        """Workers that have a batch and take one more, to start it without a pause."""

    @property
    def ready(self) -> int:
        """Workers with the model loaded, idle or not."""

    @property
    def unstarted(self) -> int:
        """Jobs that were sent to granting workers, and have not started."""

    def take_idle(self, alone: bool = False) -> Worker:
        """Return one idle worker, the longest idle first; there must be one.

        Args:
            alone: the batch that it gets is to have its process for itself, so the worker grants no other meanwhile.
        """

    def take_granting(self) -> Worker:
        """Give the granting worker that has run its batch the longest; there must be one."""
