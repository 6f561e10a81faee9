"""The models of a daemon: the registry, and what loads, runs and logs them."""

import asyncio
import contextlib
import os
from collections.abc import Iterator, Sequence
from functools import partial

from tsctl.daemon import paths
from tsctl.daemon.api.inference.held_requests import HeldRequests
from tsctl.daemon.config.config import Config
from tsctl.daemon.config.worker_env import model_environment
from tsctl.daemon.core.arena import Arena
from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.logs import ModelLogs
from tsctl.daemon.core.machine.processes import room_for_more
from tsctl.daemon.models.registrar import Registrar
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.server.observation import Observation
from tsctl.daemon.workers.local_engine import LocalEngine
from tsctl.daemon.workers.processes.spawn import StartedTemplate


class Models:
    """The registry of one daemon, empty, and what changes it.

    Args:
        template: as `started` of `LocalEngine`.
        gpus: the names for CUDA of the daemon's GPUs.
        foreground: the output of workers is printed, too.

    Attributes:
        engine: this machine's.
        logs: the files of the workers' output.
        held: requests of models that are about to be registered.

    Raises:
        StartError: a package is missing.
    """

    def __init__(
        self,
        config: Config,
        clock: Clock,
        observation: Observation,
        arena: Arena | None,
        template: StartedTemplate | None,
        gpus: Sequence[str],
        *,
        foreground: bool,
    ) -> None:
        loop, environment = asyncio.get_running_loop(), model_environment(os.environ, config)
        files = partial(paths.model_log, config.state_dir)
        self.logs = ModelLogs(files, foreground=foreground, as_json=config.log_format == "json")
        self.engine = LocalEngine(
            loop, clock, environment, arena, template=config.template, alone=True, metrics=config.model_metrics,
            started=template,
        )  # fmt: skip
        self.registry = Registry()
        self.held = HeldRequests(self.registry, clock, config.queue_jobs, config.queue_bytes)
        self.registrar = Registrar(
            config, self.registry, self.engine, clock, self.logs, observation.metrics,
            recurring=observation.recurring, gpus=gpus,
        )  # fmt: skip
        self.registrar.memory = room_for_more

    @contextlib.contextmanager
    def ended_on_failure(self) -> Iterator[None]:
        """End the engine, which may have a template and a cgroup, when the daemon's other parts cannot be made."""
        try:
            yield
        except BaseException:
            self.engine.close()
            self.engine.kill_leftovers()
            raise
