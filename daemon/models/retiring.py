"""How a version ends: it finishes what it has, its workers leave, and what was unpacked for it is released.

    stop ──nothing waits or runs, or the grace time is over──▶ refuse what waits ──▶ drain ──▶ kill ──▶ release
      └────end now──▶ refuse what waits, kill ──▶ release

What waits is answered 503 then, and so is what a worker has that is killed.
"""

from collections.abc import Callable, Iterable

from daemon.clock import Clock
from daemon.logs import ModelLogs
from daemon.metrics.metrics import Metrics
from daemon.models.directories import Directories
from daemon.models.model import Model
from daemon.models.waiting import until

LEAVE_TIME = 6.0  # seconds that a worker without work may take to leave before it is killed


class Retiring:
    """Ends versions that are not, or soon will not be, registered.

    Args:
        others: the versions that are registered or loading.

    Attributes:
        leaving: those that are on their way out.
    """

    def __init__(
        self,
        clock: Clock,
        logs: ModelLogs,
        metrics: Metrics,
        directories: Directories,
        others: Callable[[], Iterable[Model]],
    ) -> None:
        self.leaving: dict[Model, None] = {}  # in the order they began to
        self._clock = clock
        self._logs = logs
        self._metrics = metrics
        self._directories = directories
        self._others = others

    async def retire(self, model: Model, grace: float | None) -> None:
        """Let a version finish, then end its workers and release what was unpacked for it.

        A second call meanwhile, with less grace, cuts the first one short.

        Args:
            grace: seconds for everything that waits and runs; None for as many as that takes.
        """
        deadline = None if grace is None else self._clock.now() + grace

        def left() -> float | None:
            return None if deadline is None else max(0.0, deadline - self._clock.now())

        self.leaving[model] = None
        model.stop()
        # While a worker that died is being replaced, its requests are worth waiting for.
        await until(model, lambda: model.idle or model.pool.hopeless, left())
        model.refuse_waiting()
        model.pool.drain(left())
        await until(model, lambda: model.pool.empty, (left() or 0.0) + LEAVE_TIME)
        model.pool.kill()
        await until(model, lambda: model.pool.empty, LEAVE_TIME)
        self._leave(model)

    async def end(self, model: Model) -> None:
        """Answer everybody, and end its workers now; `retire` may be waiting for them, and is done then, too."""
        self.leaving[model] = None
        model.stop()
        model.refuse_waiting()
        model.pool.kill()
        await until(model, lambda: model.pool.empty, LEAVE_TIME)
        self._leave(model)

    def _leave(self, model: Model) -> None:
        if model.pool.empty:
            model.close()
        if model in self.leaving:  # else the other call was here first
            del self.leaving[model]
            self._release(model)

    def _release(self, model: Model) -> None:
        named = (model.name, model.version)
        if named not in [(each.name, each.version) for each in (*self._others(), *self.leaving)]:
            self._logs.close(*named)  # else what replaces it, or was to, writes to the same file
        self._metrics.remove(model.metrics)
        if model.source.unpacked is not None:
            self._directories.release(model.source.unpacked)
