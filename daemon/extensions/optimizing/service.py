"""The trials of all versions as a service of the daemon."""

from tsctl.daemon.extension import Kernel, Service
from tsctl.daemon.models.optimizing.trials import AutoOptimizing


class OptimizingService(Service):
    def __init__(self, kernel: Kernel) -> None:
        self._trials = AutoOptimizing(kernel.registry, kernel.registrar, kernel.config, kernel.clock)

    def serve(self) -> None:
        self._trials.begin()

    async def settle(self, *, replaced: bool) -> None:
        del replaced
        await self._trials.close()
