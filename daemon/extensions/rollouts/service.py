"""The rollouts of all models as a service of the daemon."""

from tsctl.daemon.extension import Kernel, Service


class RolloutsService(Service):
    def __init__(self, kernel: Kernel) -> None:
        self._rollouts = kernel.registrar.rollouts

    def serve(self) -> None:
        self._rollouts.begin()

    async def settle(self, *, replaced: bool) -> None:
        if not replaced:  # else the other daemon has them
            await self._rollouts.remember()
