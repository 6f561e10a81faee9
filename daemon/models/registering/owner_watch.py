"""The end of a process that owns ephemeral versions: they are unregistered then, however the process ended.

A program that ends as it should unregisters its versions itself. After kill -9 nobody does: the daemon waits for the
end of the process (pidfd, Linux 5.3), which a request names by `owner_pid`. A daemon that took over by an upgrade
waits for the same process.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable

from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.models.request import Registration

RETRY = 0.5  # seconds until a version that is being replaced, or a daemon that is being upgraded, is asked again
_ATTEMPTS = 600

_log = logging.getLogger("tsctl.daemon.models")


class OwnerWatch:
    """Waits for the ends of owners.

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
