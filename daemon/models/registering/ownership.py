"""Ephemeral versions, and their owners: a program that serves a model as long as it runs itself (`tsctl serve`).

The owner is a random token. An ephemeral registration takes no name that is registered, unless it replaces its own
version; and a program unregisters with its token, so that a model that an operator has put there since stays.
Commands without a token (`tsctl unregister`, `register --replace`) are the operator's, and never refused for this.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence

from tsctl.daemon.core.errors import BadRequest, Conflict, DaemonError
from tsctl.daemon.models.request import Registration
from tsctl.daemon.models.version import ModelVersion

MOST_OWNER = 200  # characters


def check_owner_token(owner: str) -> None:
    """Raise BadRequest if the token is too long."""
    if len(owner) > MOST_OWNER:
        raise BadRequest(f"owner has {len(owner)} characters; at most {MOST_OWNER} are allowed.")


def check_name(
    request: Registration, name: str, registered: Sequence[ModelVersion], pending: Iterable[str], *, replace: bool
) -> None:
    """Raise Conflict if this ephemeral registration would take a name that is not its owner's.

    Args:
        registered: all versions of this name.
        pending: names that an earlier run registered and that are not restored yet.
    """
    for model in registered:
        if not (replace and model.request.ephemeral and model.request.owner == request.owner):
            taken = f"Model {name} is already registered: version {model.version}, from {model.source.url}."
            raise Conflict(name, model.version, f"{taken} {_remedy(name)}")
    if name in pending:
        raise Conflict(name, "", f"Model {name} is already registered, and is being restored. {_remedy(name)}")


def check_owner(model: ModelVersion, owner: str) -> None:
    """Raise Conflict if a token is given, and the version that serves now has another one."""
    if owner and model.request.owner != owner:
        sentence = f"Model {model.name} version {model.version} has been registered by another owner since;"
        raise Conflict(model.name, model.version, f"{sentence} it stays registered.")


def _remedy(name: str) -> str:
    return f"Use another model_name, or unregister it first: `tsctl unregister {name}`."


RETRY = 0.5  # seconds until a version that is being replaced, or a daemon that is being upgraded, is asked again
_ATTEMPTS = 600

_log = logging.getLogger("tsctl.daemon.models")


class OwnerWatch:
    """The end of a process that owns ephemeral versions: they are unregistered then, however the process ended.

    A program that ends as it should unregisters its versions itself. After kill -9 nobody does: the daemon waits for
    the end of the process (pidfd, Linux 5.3), which a request names by `owner_pid`. A daemon that took over by an
    upgrade waits for the same process.

    Args:
        unregister_all: unregisters all versions of an owner's token.
    """

    def __init__(self, unregister_all: Callable[[str], Awaitable[None]]) -> None:
        self._unregister_all = unregister_all
        self._watched: dict[str, int] = {}  # token → pidfd
        self._tasks: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"<OwnerWatch {self.watching} owners>"

    @property
    def watching(self) -> int:
        """The number of processes that are waited for."""
        return len(self._watched)

    def watch(self, request: Registration) -> None:
        """Wait for the end of the process that a request names, if it names one; a process is watched once."""
        pid, owner = request.owner_pid, request.owner
        if not pid or not owner or owner in self._watched:
            return
        try:
            descriptor = os.pidfd_open(pid)
        except (ProcessLookupError, OverflowError):  # ended before the registration, or between two daemons
            self._ended(owner, pid)
            return
        except OSError as error:  # no descriptor is left, or the kernel has none of this kind: an operator unregisters
            _log.warning("the end of process %d, which serves a model, is not watched: %s", pid, error.strerror)
            return
        self._watched[owner] = descriptor
        asyncio.get_running_loop().add_reader(descriptor, self._readable, owner, pid)

    def close(self) -> None:
        """Stop waiting."""
        for descriptor in self._watched.values():
            asyncio.get_running_loop().remove_reader(descriptor)
            os.close(descriptor)
        self._watched.clear()

    def _readable(self, owner: str, pid: int) -> None:
        descriptor = self._watched.pop(owner)
        asyncio.get_running_loop().remove_reader(descriptor)
        os.close(descriptor)
        self._ended(owner, pid)

    def _ended(self, owner: str, pid: int) -> None:
        task = asyncio.get_running_loop().create_task(self._unregister(owner, pid))
        self._tasks.add(task)  # the loop itself keeps no task alive
        task.add_done_callback(self._tasks.discard)

    async def _unregister(self, owner: str, pid: int) -> None:
        for _ in range(_ATTEMPTS):
            try:
                await self._unregister_all(owner)
                return
            except DaemonError as error:
                reason = error
            await asyncio.sleep(RETRY)
        _log.warning("process %d has ended, and its models stay registered: %s", pid, reason)
