"""The cluster of a daemon as a service: the engine of the versions that run there."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tsctl.daemon.config.config import Config
from tsctl.daemon.config.worker_env import model_environment
from tsctl.daemon.core.clock import Clock
from tsctl.daemon.extension import Service
from tsctl.daemon.extensions.ray.cluster import RAY, actor_options_of, check_cluster
from tsctl.daemon.models.settings import ModelSettings
from tsctl.daemon.workers.engine import WorkerSpec

if TYPE_CHECKING:
    from tsctl.daemon.extensions.ray.engine import RayEngine


class RayService(Service):
    """The service; a daemon without a cluster has it, too, and refuses versions that ask for one.

    Args:
        spare: as in `Kernel`.
    """

    def __init__(self, config: Config, clock: Clock, spare: Callable[[int], None]) -> None:
        self._config, self._clock, self._spare = config, clock, spare
        self._engine: RayEngine | None = None

    def specify(self, settings: ModelSettings, spec: WorkerSpec) -> WorkerSpec:
        if settings.engine != RAY:
            return spec
        address = check_cluster(self._config)
        options = actor_options_of(settings, spec)
        threads = spec.chosen_threads or max(1, int(options.num_cpus))
        return replace(spec, engine=self._engine_at(address), own=options, devices=(), chosen_threads=threads)

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()

    def _engine_at(self, address: str) -> "RayEngine":
        if self._engine is None:
            from tsctl.daemon.extensions.ray.engine import RayEngine

            loop, environment = asyncio.get_running_loop(), model_environment(os.environ, self._config)
            self._engine = RayEngine(address, loop, self._clock, environment, self._spare)
        return self._engine
