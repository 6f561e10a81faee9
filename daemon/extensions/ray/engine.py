"""The engine of a Ray cluster."""

import asyncio
import os
from collections.abc import Callable, Mapping

from tsctl.daemon.core.clock import Clock
from tsctl.daemon.extensions.ray.bridge import Bridge, bridge_environment, starter_of
from tsctl.daemon.workers.engine import BatchEvents, WorkerListener, WorkerSpec
from tsctl.daemon.workers.local import LocalWorker
from tsctl.daemon.workers.processes.reaper import Children


class RayEngine:
    """Starts workers on the nodes of a cluster. Nothing is started before the first worker.

    Args:
        address: of the cluster.
        environment: of workers on this machine; nodes get the variables of the daemon's settings.
        spare: called with the pid of each bridge.
    """

    def __init__(
        self,
        address: str,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        environment: Mapping[str, str],
        spare: Callable[[int], None],
    ) -> None:
        self._loop, self._clock = loop, clock
        self._children = Children(loop, clock)
        variables = {name: value for name, value in environment.items() if name.startswith("TS_")}
        start = starter_of(self._children, bridge_environment(os.environ), spare)
        self._bridge = Bridge(address, variables, loop, clock, start)

    def start_worker(self, spec: WorkerSpec, events: WorkerListener, batches: BatchEvents) -> LocalWorker:
        return LocalWorker(spec, events, batches, self._loop, self._clock, self._bridge, None)

    def close(self) -> None:
        """End the bridge, and all workers on the cluster."""
        self._bridge.close()
        self._children.end()
