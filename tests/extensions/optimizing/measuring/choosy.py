"""An engine that loads sets of optimisations as a test says."""

import asyncio
from collections.abc import Callable, Sequence

from tests.kit.at_once import AtOnce
from tsctl.daemon.core.job import Job, Reply
from tsctl.daemon.workers.engine import BatchEvents, LoadFailure, WorkerListener, WorkerSpec
from tsctl.daemon.workers.state import WorkerState
from tsctl.daemon.workers.stub import StubEngine, StubWorker
from tsctl.handlers.wire import Loaded, Optimized

DONE = Reply(200, b"done")


class Choosy(StubEngine):
    """Loads a set as told: refuses it, or reports outcomes; notes how many workers ran at the same time."""

    def __init__(
        self,
        refusals: dict[str, LoadFailure] | None = None,
        outcomes: dict[str, Sequence[Optimized]] | None = None,
        answer: Callable[[Job], Reply] = lambda job: DONE,
    ) -> None:
        super().__init__(AtOnce(asyncio.get_running_loop()), answer=answer)
        self.refusals, self.outcomes = refusals or {}, outcomes or {}
        self.alive: list[int] = []

    def start_worker(self, spec: WorkerSpec, events: WorkerListener, batches: BatchEvents) -> StubWorker:
        name = ",".join(spec.told["optimize"])
        self.load_failure = self.refusals.get(name)
        self.report = Loaded(0.0, own_handle=False, optimized=list(self.outcomes.get(name, ())))
        worker = super().start_worker(spec, events, batches)
        self.alive.append(sum(each.state is not WorkerState.EXITED for each in self.workers))
        return worker
