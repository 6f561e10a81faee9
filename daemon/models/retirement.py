"""The retirement of versions that are no longer needed.

A version is retired in these steps: finish its requests, end its workers, release its unpacked directory.

    stop ──no request is left, or the grace time is over──▶ refuse waiting requests ──▶ drain ──▶ kill ──▶ release
      └────end now──▶ refuse waiting requests, kill ──▶ release

Refused requests are answered 503, and so are those of a worker that is killed.
"""

from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.logs import ModelLogs
from tsctl.daemon.models.archives.opening import Directories
from tsctl.daemon.models.presence import until
from tsctl.daemon.models.registry import LiveVersions
from tsctl.daemon.models.version import ModelVersion

LEAVE_TIME = 6.0  # seconds that an idle worker may take to exit before it is killed


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

    async def retire_now(self, model: ModelVersion) -> None:
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
