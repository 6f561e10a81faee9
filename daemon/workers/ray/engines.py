"""The engines of a daemon: this machine's, and that of a Ray cluster, if the daemon has one."""

import asyncio
from collections.abc import Callable, Mapping

from tsctl.daemon.core.clock import Clock
from tsctl.daemon.workers.engine import BatchEvents, Engine, Worker, WorkerListener, WorkerSpec
from tsctl.daemon.workers.local_engine import LocalEngine


class Engines:
    """An engine that starts each worker where its model is to run.

    Attributes:
        local: this machine's.

    Args:
        ray_address: of the cluster; None for none.
        environment: of workers.
    """

    def __init__(
        self,
        local: LocalEngine,
        ray_address: str | None,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        environment: Mapping[str, str],
    ) -> None:
        self.local = local
        self._ray: Engine | None = None
        self._closing: list[Callable[[], None]] = [local.close]
        if ray_address is not None:
            from tsctl.daemon.workers.ray.engine import RayEngine

            self._ray = engine = RayEngine(ray_address, loop, clock, environment, local.spare)
            self._closing.append(engine.close)

    def start_worker(self, spec: WorkerSpec, events: WorkerListener, batches: BatchEvents) -> Worker:
        """Start a worker where its model runs.

        Raises:
            OSError: no worker can be started now.
        """
        if spec.ray is None or self._ray is None:
            return self.local.start_worker(spec, events, batches)
        return self._ray.start_worker(spec, events, batches)

    def close(self) -> None:
        """End the templates, and all workers on the cluster; workers on this machine go on."""
        for close in self._closing:
            close()
