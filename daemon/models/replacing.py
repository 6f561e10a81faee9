"""Replacing a running version by another archive, without a failed request.

    old serves        ──────────────┬─▶ finishes what waits and runs ──▶ its workers leave, its directory goes
    new loads beside  ──all ready───┴─▶ serves ──▶ snapshot ──▶ answer

Between the two there is no moment: requests are read one after the other, and each finds the one
or the other in the registry. What the old one has accepted it answers, however long that takes; the
response timeout bounds each batch. If the new one cannot be loaded, nothing has happened but for the
error, and nothing of it stays. A crash on the way leaves the old or the new one in the snapshot, and
once the replacement was answered, the new one.

Settings are those of a registration: what it asks for, the archive's, the defaults. Nothing that was
`set` or scaled is carried over, but for the number of workers where neither the registration nor the
archive names one: it stays. So does the mark of the default version.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from daemon.errors import BeingReplaced, DaemonError
from daemon.metrics.metrics import Metrics
from daemon.models.directories import Progress
from daemon.models.model import Model
from daemon.models.registry import Registry
from daemon.models.replacement import Replacement
from daemon.models.request import Request
from daemon.models.waiting import all_ready

_log = logging.getLogger("daemon.models")

Retire = Callable[[Model, float | None], Awaitable[None]]


def check_unclaimed(model: Model) -> None:
    """Raises: BeingReplaced, if a replacement of it is loading."""
    if model.being_replaced:
        raise BeingReplaced(model.name, model.version)


def as_replacement(request: Request, old: Model) -> Request:
    """Ask for as many workers as the old one has, if neither the request nor the archive names a number."""
    if not old.min_workers:
        return request
    return replace(request, wishes=request.wishes.changed({"fallback_workers": old.min_workers}))


class Replacing:
    """Loads versions beside those that they are to replace, and puts them in their places.

    Args:
        retire: ends a model within so many seconds, None for as many as its requests take.
        save: remembers what is registered.
        change: as Gate.change: what loads in the background is a change until it is remembered.

    Attributes:
        loading: models that are not in the registry yet → what they are to replace.
    """

    def __init__(
        self,
        registry: Registry,
        metrics: Metrics,
        retire: Retire,
        save: Callable[[], Awaitable[None]],
        change: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self.loading: dict[Model, Model] = {}
        self._registry = registry
        self._metrics = metrics
        self._retire = retire
        self._save = save
        self._change = change
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, old: Model, new: Model) -> None:
        """Start the new one's workers, beside the old one's.

        Raises:
            BeingReplaced: another replacement is loading.
        """
        check_unclaimed(old)
        old.replacement = Replacement(new.source.url, new.pool)
        self.loading[new] = old
        _log.info("replacing %s/%s from %s", new.name, new.version, new.source.url)
        new.start()

    async def finish(self, new: Model, progress: Progress, *, synchronous: bool) -> None:
        """Let the new one serve as soon as its workers are ready; it is remembered then.

        Args:
            synchronous: wait until that is done. Else what goes wrong is in the log, and in `replacement` of the
                old one.

        Raises:
            DaemonError: it cannot be loaded, and the old one serves on.
            NotRemembered: it serves, and a restart will bring the old one back.
        """
        if synchronous:
            await self._finish(new, progress)
        else:
            inside = contextlib.ExitStack()
            inside.enter_context(self._change())  # now, while whoever asks is inside, too
            self._in_background(self._finish_alone(new, inside))

    async def _finish_alone(self, new: Model, inside: contextlib.ExitStack) -> None:
        with inside, contextlib.suppress(DaemonError):  # told already
            await self._finish(new, lambda stage, done, total: None)

    async def _finish(self, new: Model, progress: Progress) -> None:
        old = self.loading[new]
        try:
            if new.settings.workers:
                await all_ready(new, new.pool.wanted, progress)
            self._registry.replace(old, new)
        except BaseException as error:
            old.replacement = Replacement(new.source.url, None, str(error) or "it was broken off")
            del self.loading[new]
            _log.warning("%s/%s is not replaced: %s", old.name, old.version, str(error).partition("\n")[0])
            if not new.stopping:  # else whoever stops it retires it
                await self._retire(new, 0.0)
            raise
        # Up to the next `await` nothing is read: each request has found the old one, or will find the new one.
        del self.loading[new]
        self._metrics.replace(old.metrics, new.metrics)
        new.replaces, new.took_over = old, True
        _log.info("replaced %s/%s by %s", new.name, new.version, new.source.url)
        self._in_background(self._let_finish(old, new))
        await self._save()

    async def _let_finish(self, old: Model, new: Model) -> None:
        await self._retire(old, None)
        new.replaces = None

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)  # the loop itself keeps no task alive
        task.add_done_callback(self._tasks.discard)
