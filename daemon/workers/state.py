"""The one-way lifecycle of a worker.

    STARTING ──hello──▶ LOADING ──loaded──▶ READY
        │                  │                  │
        └───────stop───────┴───────stop───────┴──▶ DRAINING
                                                      │
    any state ────────────exited──────────────────────┴──▶ EXITED

A worker is never restarted, but replaced by the pool (pool.py). So no arrow goes back, and a
reader of a log line knows which arrows are still possible.
"""

from enum import Enum, auto


class WorkerState(Enum):
    STARTING = auto()  # the process exists; no message has arrived yet
    LOADING = auto()  # the model was sent; handler.initialize() runs
    READY = auto()  # may be given batches
    DRAINING = auto()  # finishes its batches and gets nothing new
    EXITED = auto()  # the process is gone and its exit code is known


class WorkerEvent(Enum):
    HELLO = auto()
    LOADED = auto()
    STOP = auto()
    EXITED = auto()


TRANSITIONS: dict[WorkerState, dict[WorkerEvent, WorkerState]] = {
    WorkerState.STARTING: {
        WorkerEvent.HELLO: WorkerState.LOADING,
        WorkerEvent.STOP: WorkerState.DRAINING,
        WorkerEvent.EXITED: WorkerState.EXITED,
    },
    WorkerState.LOADING: {
        WorkerEvent.LOADED: WorkerState.READY,
        WorkerEvent.STOP: WorkerState.DRAINING,
        WorkerEvent.EXITED: WorkerState.EXITED,
    },
    WorkerState.READY: {WorkerEvent.STOP: WorkerState.DRAINING, WorkerEvent.EXITED: WorkerState.EXITED},
    WorkerState.DRAINING: {WorkerEvent.EXITED: WorkerState.EXITED},
    WorkerState.EXITED: {},
}
