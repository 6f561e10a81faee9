"""Readiness that ends while a queue is full: `--no-ready-when-full`.

A load balancer that asks for readiness then sends new requests to other daemons, which refuse none of them yet.
"""

from collections.abc import Callable, Iterable

from tsctl.daemon.models.version import ModelVersion


def has_room(model: ModelVersion) -> bool:
    """Return whether the queue of a version takes one more request of a byte."""
    queue = model.queue
    return model.waiting < queue.max_jobs and queue.bytes < queue.max_bytes


def while_there_is_room(
    started: Callable[[], bool], answering: Callable[[], Iterable[ModelVersion]]
) -> Callable[[], bool]:
    """Return a function that tells whether the daemon has started and the queue of each version has room.

    Args:
        answering: returns the versions that answer requests without a version.
    """
    return lambda: started() and all(map(has_room, answering()))
