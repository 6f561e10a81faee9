"""The trials of all versions as a service of the daemon."""

from collections.abc import Mapping
from typing import Any

from tsctl.daemon.extension import Kernel, Service
from tsctl.daemon.extensions.optimizing.documents import optimized_of, trial_of
from tsctl.daemon.extensions.optimizing.trials import TrialRunner
from tsctl.daemon.models.version import ModelVersion


class OptimizingService(Service):
    def __init__(self, kernel: Kernel) -> None:
        self._trials = TrialRunner(kernel.registry, kernel.registrar, kernel.config, kernel.clock)

    def attach(self, model: ModelVersion) -> None:
        self._trials.attach(model)

    def describe(self, model: ModelVersion) -> Mapping[str, Any]:
        return {"optimize": optimized_of(model), "trial": trial_of(self._trials.of(model))}

    def settings(self, model: ModelVersion) -> Mapping[str, Any]:
        trial = self._trials.of(model)
        return {} if trial is None else {"optimize": list(trial.chosen) or None}

    def serve(self) -> None:
        self._trials.begin()

    async def settle(self, *, replaced: bool) -> None:
        del replaced
        await self._trials.close()
