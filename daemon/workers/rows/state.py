"""A row at its worker.

    RUNNING ──done──────────────────────────────────▶ ENDED
       │                                                ▲
       └──cancel, late──▶ CANCELLED ──done──────────────┘

A row ends when the worker says so (`Done`), or with the worker's process. Until then it keeps its place, and its values
in the arena stay. The dispatcher takes the row back at the first arrow out of RUNNING that it did not ask for: `done`,
`late`, or the end of the process.
"""

from enum import IntEnum, auto


class RowState(IntEnum):
    RUNNING = auto()  # its answer is awaited
    CANCELLED = auto()  # nobody waits for its answer; the worker was told
    ENDED = auto()  # the worker has finished it


class RowEvent(IntEnum):
    DONE = auto()  # the worker reports its end
    CANCEL = auto()  # its client has left, or its deadline has passed
    LATE = auto()  # nothing was heard of it within the response timeout


TRANSITIONS: dict[RowState, dict[RowEvent, RowState]] = {
    RowState.RUNNING: {
        RowEvent.DONE: RowState.ENDED,
        RowEvent.CANCEL: RowState.CANCELLED,
        RowEvent.LATE: RowState.CANCELLED,
    },
    RowState.CANCELLED: {RowEvent.DONE: RowState.ENDED, RowEvent.CANCEL: RowState.CANCELLED},
    RowState.ENDED: {},
}
