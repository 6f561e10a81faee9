"""Replace a running version by another archive, without a failed request.

    old serves        ──────────────┬─▶ finishes its requests ──▶ its workers leave, its directory is removed
    new loads beside  ──all ready───┴─▶ serves ──▶ snapshot ──▶ answer

The switch is atomic: requests are read one after the other, and each finds the old or the new version in the
registry. The old version answers every request that it has accepted, however long that takes; the response
timeout bounds each batch. A new version that cannot be loaded is removed, and the old one is unchanged. After
a crash the snapshot has the old or the new version, and the new one once the replacement was answered.

Settings that were given at the registration, or `set` or scaled since, are kept. A default
version stays the default.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any

from tsctl.daemon.core.errors import BeingReplaced, Conflict, DaemonError
from tsctl.daemon.models.archives.opening import Progress
from tsctl.daemon.models.persistence.ledger import Gate, Ledger
from tsctl.daemon.models.presence import all_ready
from tsctl.daemon.models.registry import LiveVersions, Registry
from tsctl.daemon.models.replacement import Replacement
from tsctl.daemon.models.request import Registration
from tsctl.daemon.models.retirement import Retiring
from tsctl.daemon.models.settings import Overrides, SettingsBefore
from tsctl.daemon.models.version import ModelVersion


def keep(request: Registration, old: ModelVersion) -> Registration:
    """Return the request with what was asked for the old version, where the request asks for nothing.

        asked for in the request                          wins
        asked for at the registration, `set`, scaled      kept, also if the new archive has another value
        of model-config.yaml, the daemon, the defaults    read again, from the new archive

    So nothing that was chosen for a version is lost when its archive is replaced; `reset` (`register --replace
    --reset`) begins with the request alone. Without any chosen number of workers, the present number is the fallback.
    The handler, the name and the runtime belong to the archive, and are not kept.
    """
    asked, before = request.overrides, old.request.overrides
    values = {name: before.said[name] for name in before.said if _is_kept(name, asked)} | asked.said
    if old.presence.least:
        values["fallback_workers"] = old.presence.least
    since = {name: command for name, command in before.since.items() if _is_kept(name, asked)}
    return replace(request, overrides=Overrides(since=since, **values))


def before_replacement(request: Registration, old: ModelVersion, *, reset: bool) -> SettingsBefore:
    """Return the old version's settings, and which of them `keep` keeps."""
    workers = {"workers": old.presence.least, "max_workers": old.presence.most}
    kept = () if reset else [name for name in old.request.overrides.said if _is_kept(name, request.overrides)]
    return SettingsBefore(old.settings.changed(workers, "register"), tuple(kept))


def _is_kept(name: str, asked: Overrides) -> bool:
    if name == "max_workers":  # the largest number belongs to the least number: `tsctl scale` sets both
        return asked.workers is None
    return name not in asked.said


def check_unclaimed(model: ModelVersion) -> None:
    """Raise BeingReplaced if a replacement of the model is loading."""
    if model.being_replaced:
        raise BeingReplaced(model.name, model.version)


class Replacing:
    """Loads versions beside those that they replace, and switches to them.

    Args:
        gate: a replacement in the background is inside until the snapshot is written.
    """

    def __init__(self, registry: Registry, live: LiveVersions, retiring: Retiring, ledger: Ledger, gate: Gate) -> None:
        self._registry = registry
        self._live = live
        self._retiring = retiring
        self._ledger = ledger
        self._gate = gate
        self._tasks: set[asyncio.Task[None]] = set()

    def replaceable(self, name: str, version: str) -> ModelVersion | None:
        """Return the version to replace, None if there is none.

        Raises:
            Conflict: the version is still being registered, or is being replaced.
            Stopping: the daemon is being stopped.
        """
        if not self._registry.holds(name, version):
            return None
        self._live.check_going_on()
        model = self._registry.find(name, version)
        if model in self._ledger.unsettled:
            sentence = f"Model version {version} of model {name} is still being registered."
            raise Conflict(name, version, f"{sentence} Try again when that is done.")
        check_unclaimed(model)
        return model

    def load_beside(self, old: ModelVersion, new: ModelVersion, what: str = "") -> None:
        """Start the new version's workers, beside the old one's, which was `replaceable` in this turn of the loop.

        Args:
            what: the new version, for the events; by default its archive.
        """
        old.replacement = Replacement(new.source.url, new.pool)
        self._live.loading[new] = old
        new.reports.add("replacing", f"{what or new.source.url} is loading, to replace this version")
        new.start(load=bool(old.pool.wanted))  # an archive that cannot be loaded must not replace one that serves
        new.tell_services()

    async def finish(self, new: ModelVersion, progress: Progress, *, synchronous: bool) -> None:
        """Switch to the new version as soon as its workers are ready, and write the snapshot.

        Args:
            synchronous: wait until that is done. Else an error is logged, and shown by the old version's `replacement`.

        Raises:
            DaemonError: the new version cannot be loaded; the old one goes on serving.
            NotRemembered: the new version serves, but a restart brings the old one back.
        """
        if synchronous:
            await self._finish(new, progress)
        else:
            self.go_on(partial(self._finish, new, lambda stage, done, total: None))

    def go_on(self, rest: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do the rest of a change for which nobody waits, inside the gate; an event must tell of its failure."""
        inside = contextlib.ExitStack()
        inside.enter_context(self._gate.change())  # now, while the request is inside the gate, too
        self._in_background(self._alone(rest(), inside))

    async def _alone(self, rest: Coroutine[Any, Any, None], inside: contextlib.ExitStack) -> None:
        with inside, contextlib.suppress(DaemonError):  # told already
            await rest

    async def _finish(self, new: ModelVersion, progress: Progress) -> None:
        old = self._live.loading[new]
        try:
            if new.pool.wanted:
                await all_ready(new, new.pool.wanted, progress)
            self._live.switch(new)
        except BaseException as error:
            old.replacement = Replacement(new.source.url, None, str(error) or "the replacement was cancelled")
            del self._live.loading[new]
            old.reports.add("replacement-failed", f"not replaced by {new.source.url}: {error}")
            if not new.stopping:  # else `stop` retires it
                await self._retiring.retire(new, 0.0)
            raise
        # Up to the next `await` no request is read: each has found the old version, or will find the new one.
        new.reports.add("replaced", f"replaced by {new.source.url}")
        self._in_background(self._let_finish(old, new))
        await self._ledger.save()

    async def _let_finish(self, old: ModelVersion, new: ModelVersion) -> None:
        await self._retiring.retire(old, None)
        new.replaces = None

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)  # the loop itself keeps no task alive
        task.add_done_callback(self._tasks.discard)
