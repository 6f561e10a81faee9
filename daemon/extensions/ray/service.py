"""The cluster of a daemon as a service: the engine of the versions that run there."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tsctl.daemon.config.config import Config
from tsctl.daemon.config.worker_env import model_environment
from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.errors import BadRequest, InvalidModel
from tsctl.daemon.extension import Service
from tsctl.daemon.models.settings import ModelSettings
from tsctl.daemon.workers.engine import WorkerSpec
from tsctl.handlers.ray.messages import ActorOptions

if TYPE_CHECKING:
    from tsctl.daemon.extensions.ray.bridge import RayEngine

RAY = "ray"
# The settings that workers on nodes do not have, and what to do about each; other extensions' are among them.
_REFUSED = {
    "sequences": "`sequenceBatching`: remove it, or run the model on this machine",
    "parallel_type": "`parallelType`: remove it, or run the model on this machine",
    "max_memory": "`maxMemory`: reserve memory by `ray: {resources: …}`, or run the model on this machine",
    "cpus": "`cpus`, which are this machine's: name `num_cpus` in `ray:`",
    "device_ids": "`deviceIds`, which are this machine's: name `num_gpus` in `ray:`",
}


def check_cluster(config: Config) -> str:
    """Return the address of the daemon's cluster.

    Raises:
        BadRequest: the daemon has none, or the package ray is missing.
    """
    if config.ray_address is None:
        raise BadRequest("engine is ray, but this daemon has no Ray cluster: start it with `--ray-address HOST:PORT`.")
    if find_spec(RAY) is None:
        raise BadRequest(
            "engine is ray, but the package ray is not installed: `pip install 'tsctl[ray]'`, in the same version as on"
            " the cluster."
        )
    return str(config.ray_address)


def actor_options_of(settings: ModelSettings, spec: WorkerSpec) -> ActorOptions:
    """Return what a worker takes of its node.

    Raises:
        InvalidModel: the settings ask for something that workers on nodes do not have.
    """
    refused = {
        "a directory or a file, which may change while it is served: pack it with `tsctl archive`": spec.in_place,
        "requirements of its own: install them on the nodes, and start the daemon without `--install-requirements`":
            spec.python is not None,
        "`continuousBatching` or `asyncCommunication`: remove it, or run the model on this machine":
            spec.mode != "batch",
    } | {what: bool(vars(settings).get(name)) for name, what in _REFUSED.items()}  # fmt: skip
    for what, asked in refused.items():
        if asked:
            raise InvalidModel(f"Workers on a Ray cluster do not take {what}.")
    return ActorOptions(**(settings.ray or {}))


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
            from tsctl.daemon.extensions.ray.bridge import RayEngine

            loop, environment = asyncio.get_running_loop(), model_environment(os.environ, self._config)
            self._engine = RayEngine(address, loop, self._clock, environment, self._spare)
        return self._engine
