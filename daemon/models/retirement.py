"""The versions that live, and the retirement of those that are no longer needed.

A version is retired in these steps: finish its requests, end its workers, release its unpacked directory.

    stop ──no request is left, or the grace time is over──▶ refuse waiting requests ──▶ drain ──▶ kill ──▶ release
      └────end now──▶ refuse waiting requests, kill ──▶ release

Refused requests are answered 503, and so are those of a worker that is killed.
"""

from collections.abc import Iterator

from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.errors import Stopping
from tsctl.daemon.core.logs import ModelLogs
from tsctl.daemon.metrics.metrics import Metrics
from tsctl.daemon.models.archives.opening import Directories
from tsctl.daemon.models.presence import until
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.version import ModelVersion

LEAVE_TIME = 6.0  # seconds that an idle worker may take to exit before it is killed


class LiveVersions:
    """The versions that have, or may have, workers: they come and go here; `metrics` shows the registered ones.

    Attributes:
        loading: models that are not in the registry yet → the versions that they replace.
        leaving: the versions that are being retired, in the order of their retirement.
        stopping: the daemon is being stopped, and adds no version.
    """

    def __init__(self, registry: Registry, metrics: Metrics) -> None:
        self.loading: dict[ModelVersion, ModelVersion] = {}
        self.leaving: dict[ModelVersion, None] = {}
        self.stopping = False
        self._registry = registry
        self.metrics = metrics

    def __iter__(self) -> Iterator[ModelVersion]:
        """Return an iterator over all of them, each once; they may change meanwhile."""
        return iter(dict.fromkeys((*self._registry, *self.loading, *self.leaving)))

    def check_going_on(self) -> None:
        """Raise Stopping if the daemon is being stopped."""
        if self.stopping:
            raise Stopping("The daemon is being stopped.")

    def add(self, model: ModelVersion) -> None:
        """Put a model into the registry: requests and metrics find it from now on.

        Raises:
            Stopping: the daemon is being stopped.
            Conflict: the version is registered, and has not failed.
        """
        self.check_going_on()
        model.replaces = self._registry.add(model)
        self.metrics.add(model.metrics)

    def switch(self, new: ModelVersion) -> None:
        """Put a loaded model into the place of the version that it replaces.

        Raises:
            VersionNotFound: the old version is no longer registered.
        """
        old = self.loading[new]
        self._registry.replace(old, new)
        del self.loading[new]
        self.metrics.replace(old.metrics, new.metrics)
        new.replaces, new.took_over = old, True

    def gone(self, model: ModelVersion) -> None:
        """Note that a version is retired."""
        del self.leaving[model]
        self.metrics.remove(model.metrics)


class Retiring:
    """Ends versions that are not, or soon will not be, registered."""

    def __init__(self, clock: Clock, logs: ModelLogs, directories: Directories, live: LiveVersions) -> None:
        self._clock = clock
        self._logs = logs
        self._directories = directories
        self._live = live

    async def retire(self, model: ModelVersion, grace: float | None) -> None:
        """Let a version finish, then end its workers and release its unpacked directory.

        A second call meanwhile, with less grace, cuts the first one short.

        Args:
            grace: seconds for all waiting and running requests; None for no limit.
        """
        deadline = None if grace is None else self._clock.now() + grace

        def left() -> float | None:
            return None if deadline is None else max(0.0, deadline - self._clock.now())

        self._live.leaving[model] = None
        model.stop()
        # Requests wait for the replacement of a worker that died, and for a load on demand.
        await until(model, lambda: model.idle or (model.pool.hopeless and not model.presence.comes), left())
        model.refuse_waiting()
        model.pool.drain(left())
        await until(model, lambda: model.pool.empty, (left() or 0.0) + LEAVE_TIME)
        model.pool.kill()
        await until(model, lambda: model.pool.empty, LEAVE_TIME)
        self._leave(model)

    async def retire_replaced(self, model: ModelVersion) -> None:
        """Retire the failed version whose place a registration has taken, if there was one."""
        if model.replaces is not None:
            replaced, model.replaces = model.replaces, None
            await self.retire(replaced, grace=0.0)

    async def end(self, model: ModelVersion) -> None:
        """Refuse the waiting requests and kill the workers now; a `retire` in progress finishes, too."""
        self._live.leaving[model] = None
        model.stop()
        model.refuse_waiting()
        model.pool.kill()
        await until(model, lambda: model.pool.empty, LEAVE_TIME)
        self._leave(model)

    def _leave(self, model: ModelVersion) -> None:
        if model.pool.empty:
            model.close()
        if model in self._live.leaving:  # else the other call has done this
            self._live.gone(model)
            named = (model.name, model.version)
            if named not in [(each.name, each.version) for each in self._live]:
                self._logs.close(*named)  # else another model with this name and version writes to the same file
            if model.source.unpacked is not None:
                self._directories.release(model.source.unpacked)
