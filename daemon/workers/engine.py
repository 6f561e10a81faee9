"""The interface of this room: engines start workers, and workers run batches.

A worker reports its life to its `WorkerListener`, the pool, and what becomes of its batches to its `BatchEvents`, the
dispatcher. All calls are plain, so the same pool and dispatcher run over processes (`local.py`), over those of other
machines, which an extension's engine starts, and over a fake on a virtual clock (`stub.py`).

The order of events for one worker: `loaded` or `load_failed` at most once; then for each `predict`
any number of `streamed` and one `ended`; `lost` at most once; `exited` exactly once, last. A worker that goes
away with batches in flight first ends them, the last sent first, with their jobs returned.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from tsctl.daemon.core.job import Batch, Job, Outcome, Reply
from tsctl.daemon.core.logs import OutputLog
from tsctl.daemon.workers.inflight import InFlight
from tsctl.daemon.workers.state import WorkerState
from tsctl.handlers.wire import Declared, Isolation, Kind, Loaded, Measurement, Mode

STOPPED = "stopped"
LOAD_FAILED = "load_failed"
UNREACHABLE = "unreachable"
# The ways in which a worker ends, for counters.
ENDS: dict[str, str] = {
    STOPPED: "the daemon stopped the worker",
    LOAD_FAILED: "the worker reported that it cannot load the model",
    "code": "the worker exited of itself",
    "signal": "a signal ended the worker, other than SIGKILL",
    "killed": "a SIGKILL that the daemon did not send: most likely the kernel's, out of memory",
    "gpu": "an error broke the worker's GPU context, so that it left",
    "memory": "the worker exceeded its limit of memory",
    "startup_timeout": "the model was not loaded in time",
    "response_timeout": "a batch was not answered in time",
    "protocol": "the worker broke its connection to the daemon, or sent an invalid message",
    UNREACHABLE: "the worker's node of a cluster was lost, or the way there",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSpec:
    """The configuration of a worker.

    Attributes:
        handler: as in the manifest: a built-in name, `file.py` or `file.py:function`.
        threads: intra-op threads, set before torch is imported.
        devices: ids of the GPUs its workers may use, empty for the CPU.
        gpu_ids: the GPUs of this worker; empty for the CPU.
        gpus_each: how many of them a worker uses.
        gpu_names: the names for CUDA of all GPUs of the daemon, by their ids; empty if unknown.
        group: the number of processes of a worker that is a group of them, be it of one; None for a lone process.
        chosen_threads: the model's number of threads for each process; None for a share of the cores.
        startup_timeout, response_timeout: seconds.
        retry: whether a job may run again after a worker died with it; None leaves that to the
            handler: yes where `handle` is ours, no where `handle` is the user's.
        isolate: whether the jobs of a batch for which the handler raised run alone; None as for `retry`.
        max_memory: the worker's limit in bytes (processes/memory_limit.py); None for no limit.
        cpus: the processors that the worker may use, by number; empty for all.
        mode: as in `tsctl.handlers.wire.Load`.
        rows: the most rows at the same time, if the mode is not `batch`; of `continuous` a multiple of the batch size.
        python: the interpreter; None for the daemon's own.
        in_place: whether the model's directory is its author's own, and not an unpacked archive.
        engine: starts the workers on other machines, where it finds room for them; None for this machine.
        own: what that engine must know beside.
        told: further fields of `tsctl.handlers.wire.Load`, by name.
        metrics: the declared metrics (see `tsctl.handlers.wire.Load`).
        log: called with the worker's output.
        measured: called with the handler's measurements, whenever it reports some.
        isolated: called for each batch whose jobs ran alone, or in halves.
        too_large: called with the number of rows for which a worker's memory did not suffice together.
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
    gpu_ids: Sequence[int] = ()
    gpus_each: int = 1
    gpu_names: Sequence[str] = ()
    group: int | None = None
    chosen_threads: int | None = None
    retry: bool | None = None
    isolate: bool | None = None
    python: Path | None = None
    in_place: bool = False
    engine: "Engine | None" = None
    own: object = None
    told: Mapping[str, Any] = field(default_factory=dict)
    max_memory: int | None = None
    cpus: Sequence[int] = ()
    mode: Mode = "batch"
    rows: int = 1
    metrics: Sequence[tuple[Kind, str, str, list[str]]] = ()
    log: OutputLog = field(default=lambda text, pid, stream: None)
    measured: Callable[[Sequence[Measurement]], None] = field(default=lambda measurements: None)
    isolated: Callable[[Isolation], None] = field(default=lambda isolation: None)
    too_large: Callable[[int], None] = field(default=lambda rows: None)

    @property
    def processes(self) -> int:
        """The number of processes of a worker."""
        return self.group or 1

    def limited(self, batch_size: int, response_timeout: float) -> "WorkerSpec":
        """Return the configuration with these limits; rows that run continuously have places in proportion."""
        rows = self.rows // self.batch_size * batch_size if self.mode == "continuous" else self.rows
        return replace(self, batch_size=batch_size, rows=rows, response_timeout=response_timeout)


@dataclass(frozen=True, slots=True)
class LoadFailure:
    """The reason why a model could not be loaded.

    Attributes:
        error: one line, the exception.
        traceback: the handler's own, may be empty.
        permanent: starting another worker would end the same way.
        refused: as in `tsctl.handlers.wire.LoadFailed`.
    """

    error: str
    traceback: str = ""
    permanent: bool = True
    out_of_memory: bool = False
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Exit:
    """The end of a worker.

    Attributes:
        code: exit code, or None if a signal ended the process.
        reason: in words, for people.
        output: the last lines, oldest first.
        crashed: the worker ended of itself: killed neither by the daemon nor by a SIGKILL.
        busy: the worker had started a batch.
        kind: one of `ENDS`.
    """

    code: int | None
    reason: str
    output: Sequence[str] = ()
    crashed: bool = False
    busy: bool = False
    kind: str = STOPPED


class Worker(Protocol):
    """One running copy of a model version. Never restarted, but replaced by the pool."""

    state: WorkerState
    gpu_ids: Sequence[int]
    gpu_memory: Mapping[int, int]  # bytes that it holds on each of them, as it has last told; empty before it is ready
    answered: bool  # whether at least one batch was answered
    started: float  # wall-clock seconds since the epoch
    load_time: float  # seconds from the start until the worker was ready; 0.0 before
    report: Loaded | None  # what the worker has told when its model was loaded; None before
    declared: Declared | None  # the inputs of a typed handler; None for any other, and before the worker is ready
    notes: Sequence[str]  # the worker's sentences for the model's author; empty before it is ready

    @property
    def in_flight(self) -> InFlight:
        """The worker's batches, and how many fit."""

    @property
    def pid(self) -> int:
        """The process id; 0 while the process is being made."""

    @property
    def node(self) -> str:
        """The node of a cluster that the worker runs on; empty for this machine."""

    @property
    def waits(self) -> str:
        """Why the worker has no process yet, in words; empty if unknown."""

    def predict(self, batch: Batch) -> None:
        """Run a batch after those in hand; the worker must be READY, and have room. Return at once."""

    def cancel(self, job: Job) -> None:
        """Drop a job that runs and is not wanted any more, where the worker's mode allows it; its batch still ends."""

    def set_threads(self, count: int) -> None:
        """Use this many intra-op threads from the next batch on."""

    def set_limits(self, batch_size: int, response_timeout: float) -> None:
        """Expect batches of this size, to be answered within this many seconds, from the next batch on."""

    def suspend(self) -> None:
        """Stop computing, until `resume`, so that others have the processors; no timeout counts meanwhile.

        A worker on a node of a cluster goes on, and so does one that is not ready.
        """

    def resume(self) -> None:
        """Go on computing after `suspend`; `drain` does the same first."""

    def drain(self, grace: float) -> None:
        """Finish the batches in hand, then exit; killed after `grace` seconds, inf for never."""

    def kill(self) -> None:
        """End the worker now."""


def local_pid(worker: Worker) -> int:
    """Return the worker's process id on this machine; 0 if it has none, or runs on a node of a cluster."""
    return 0 if worker.node else worker.pid


class WorkerListener(Protocol):
    """The receiver of the events of a worker's life: the pool."""

    def loaded(self, worker: Worker) -> None: ...

    def load_failed(self, worker: Worker, failure: LoadFailure) -> None: ...

    def lost(self, worker: Worker) -> None:
        """Note that the worker cannot be sent anything more, and will exit."""

    def flow_changed(self, worker: Worker) -> None:
        """Note that the worker is congested, or is so no more (`in_flight.congested`)."""

    def exited(self, worker: Worker, how: Exit) -> None: ...


class BatchEvents(Protocol):
    """The receiver of the events of a worker's batches: the dispatcher."""

    def ended(self, worker: Worker, batch: Batch, outcomes: Sequence[Outcome], seconds: float) -> None:
        """Take back a batch, with one outcome per job; `seconds` as measured in the worker, 0.0 after its death."""

    def streamed(self, worker: Worker, job: Job, piece: Reply) -> None:
        """Take a piece of the answer to a job of the worker's batch."""

    def late(self, worker: Worker, job: Job, reply: Reply) -> None:
        """Answer a job that exceeded the response timeout, alone; its batch still ends."""


class Engine(Protocol):
    """A place where workers can run: this machine, a cluster, a test."""

    def start_worker(self, spec: WorkerSpec, events: WorkerListener, batches: BatchEvents) -> Worker:
        """Begin to start a worker.

        Raises:
            OSError: no worker can be started now.
        """
