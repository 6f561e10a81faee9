"""The watcher of requests, as the versions that answer them see it; the mirror is one."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from tsctl.daemon.core.job import Param, Reply


class AskedOf(NamedTuple):
    """A request as its job has it.

    Attributes:
        infer: the head of a request in tensors, or None.
    """

    id: str
    params: Sequence[Param]
    headers: Sequence[tuple[str, str]]
    infer: object


class Receivers(NamedTuple):
    """The receivers of a job's last reply, and of the pieces before it."""

    deliver: Callable[[Reply], None]
    stream: Callable[[Reply], None]


class RequestWatcher(Protocol):
    """Sees the requests that a version is about to get, and their answers."""

    def watch(self, asked: AskedOf, to: Receivers) -> Receivers:
        """Return the receivers of a request's answer: those given, or others that pass everything on to them."""


class Mirroring(RequestWatcher, Protocol):
    """A watcher that copies requests until it is closed."""

    def close(self) -> None:
        """Copy nothing more."""
