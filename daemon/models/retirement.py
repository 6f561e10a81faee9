"""Retire a version: finish its requests, end its workers, release its unpacked directory.

    stop ──no request is left, or the grace time is over──▶ refuse waiting requests ──▶ drain ──▶ kill ──▶ release
      └────end now──▶ refuse waiting requests, kill ──▶ release

Refused requests are answered 503, and so are those of a worker that is killed.
"""

from collections.abc import Callable, Iterable

from daemon.core.clock import Clock
from daemon.core.logs import ModelLogs
from daemon.metrics.metrics import Metrics
from daemon.models.archives.directories import Directories
from daemon.models.version import Model
from daemon.models.wait import until

LEAVE_TIME = 6.0  # seconds that an idle worker may take to exit before it is killed


class Retiring:
    """Ends versions that are not, or soon will not be, registered.

    Args:
        others: the versions that are registered or loading.

    Attributes:
        leaving: the versions that are being retired.
    """

    def __init__(
        self,
        clock: Clock,
        logs: ModelLogs,
        metrics: Metrics,
        directories: Directories,
        others: Callable[[], Iterable[Model]],
    ) -> None:
        self.leaving: dict[Model, None] = {}  # in the order of their retirement
        self._clock = clock
        self._logs = logs
        self._metrics = metrics
        self._directories = directories
        self._others = others

    async def retire(self, model: Model, grace: float | None) -> None:
        """Let a version finish, then end its workers and release its unpacked directory.

        A second call meanwhile, with less grace, cuts the first one short.

        Args:
            grace: seconds for all waiting and running requests; None for no limit.
        """
        deadline = None if grace is None else self._clock.now() + grace

        def left() -> float | None:
            return None if deadline is None else max(0.0, deadline - self._clock.now())

        self.leaving[model] = None
        model.stop()
        # Requests wait for the replacement of a worker that died.
        await until(model, lambda: model.idle or model.pool.hopeless, left())
        model.refuse_waiting()
        model.pool.drain(left())
        await until(model, lambda: model.pool.empty, (left() or 0.0) + LEAVE_TIME)
        model.pool.kill()
        await until(model, lambda: model.pool.empty, LEAVE_TIME)
        self._leave(model)

    async def end(self, model: Model) -> None:
        """Refuse the waiting requests and kill the workers now; a `retire` in progress finishes, too."""
        self.leaving[model] = None
        model.stop()
        model.refuse_waiting()
        model.pool.kill()
        await until(model, lambda: model.pool.empty, LEAVE_TIME)
        self._leave(model)

    def _leave(self, model: Model) -> None:
        if model.pool.empty:
            model.close()
        if model in self.leaving:  # else the other call has done this
            del self.leaving[model]
            self._release(model)

    def _release(self, model: Model) -> None:
        named = (model.name, model.version)
        if named not in [(each.name, each.version) for each in (*self._others(), *self.leaving)]:
            self._logs.close(*named)  # else another model with this name and version writes to the same file
        self._metrics.remove(model.metrics)
        if model.source.unpacked is not None:
            self._directories.release(model.source.unpacked)
