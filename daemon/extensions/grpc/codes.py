"""The gRPC status code of each error that HTTP reports with a status."""

from enum import IntEnum

from tsctl.daemon.core.errors import (
    BeingReplaced,
    Conflict,
    DaemonError,
    DefaultVersionKept,
    NotFailed,
    OutOfResources,
    PredictionFailed,
    WorkerKilled,
)
from tsctl.daemon.extensions.grpc.waiting.incoming_messages import TooManyCalls, TooManyWatchers
from tsctl.daemon.http.bounds.receiving import NoRoom
from tsctl.daemon.http.bounds.sending import NoRoomToSend


class Code(IntEnum):
    """The status codes of gRPC's specification; declared here because grpc is an optional dependency."""

    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


# 401 is PERMISSION_DENIED rather than UNAUTHENTICATED: TorchServe's clients look for it when a token is missing.
BY_STATUS = {
    400: Code.INVALID_ARGUMENT,
    401: Code.PERMISSION_DENIED,
    403: Code.PERMISSION_DENIED,
    404: Code.NOT_FOUND,
    405: Code.UNIMPLEMENTED,
    408: Code.DEADLINE_EXCEEDED,
    409: Code.ABORTED,
    411: Code.INVALID_ARGUMENT,
    412: Code.FAILED_PRECONDITION,
    413: Code.RESOURCE_EXHAUSTED,
    414: Code.INVALID_ARGUMENT,
    415: Code.INVALID_ARGUMENT,
    417: Code.INVALID_ARGUMENT,
    422: Code.INVALID_ARGUMENT,
    429: Code.RESOURCE_EXHAUSTED,
    431: Code.RESOURCE_EXHAUSTED,
    500: Code.INTERNAL,
    501: Code.UNIMPLEMENTED,
    502: Code.UNAVAILABLE,
    503: Code.UNAVAILABLE,
    504: Code.DEADLINE_EXCEEDED,
    505: Code.UNIMPLEMENTED,
    507: Code.RESOURCE_EXHAUSTED,
}

# Where the status alone would mislead a client; the nearest base class counts.
BY_CLASS: dict[type[DaemonError], Code] = {
    BeingReplaced: Code.ABORTED,  # passes when the replacement ends, while a second registration never does
    Conflict: Code.ALREADY_EXISTS,
    DefaultVersionKept: Code.FAILED_PRECONDITION,  # another token would not help
    NoRoom: Code.RESOURCE_EXHAUSTED,
    NoRoomToSend: Code.RESOURCE_EXHAUSTED,
    NotFailed: Code.FAILED_PRECONDITION,
    OutOfResources: Code.RESOURCE_EXHAUSTED,
    PredictionFailed: Code.INTERNAL,  # 503 over HTTP, but gRPC clients retry UNAVAILABLE
    TooManyCalls: Code.RESOURCE_EXHAUSTED,  # clients that repeat UNAVAILABLE would keep the limit reached
    TooManyWatchers: Code.RESOURCE_EXHAUSTED,
    WorkerKilled: Code.INTERNAL,  # the kernel's memory, not a quota of the caller's
}


def code_of_status(status: int) -> Code:
    """Return the code of an HTTP status of an error, such as one that a handler chose."""
    if status in BY_STATUS:
        return BY_STATUS[status]
    return Code.INVALID_ARGUMENT if 400 <= status < 500 else Code.INTERNAL


def code_of(error: Exception) -> Code:
    """Return the code of an error; INTERNAL for one that is not the daemon's."""
    if not isinstance(error, DaemonError):
        return Code.INTERNAL
    for base in type(error).__mro__:
        if base in BY_CLASS:
            return BY_CLASS[base]
    return code_of_status(error.status)
