"""Values for ts_metrics.log that no request brings: the machine's, and the time in which each worker has loaded."""

import asyncio

from tsctl.daemon.api.management.describe import FIRST_WORKER_ID
from tsctl.daemon.core.clock import Clock, Ticker
from tsctl.daemon.core.machine.gpu import Gpus
from tsctl.daemon.extensions.exposition.gpu_values import gpu_values
from tsctl.daemon.extensions.exposition.host import HostMonitor
from tsctl.daemon.extensions.torchserve_logs.metric_log import MetricLog
from tsctl.daemon.models.registry import Registry

LOOK_EVERY = 1.0  # seconds, for workers that have loaded


class PeriodicMetrics:
    """Writes these values while the daemon runs.

    Args:
        interval: seconds between two measurements of the machine; None for none.
    """

    def __init__(
        self,
        log: MetricLog,
        registry: Registry,
        host: HostMonitor,
        gpus: Gpus,
        clock: Clock,
        interval: float | None,
    ) -> None:
        self._log = log
        self._registry = registry
        self._host = host
        self._gpus = gpus
        self._calls = [(LOOK_EVERY, self.write_load_times)]
        if interval is not None:
            self._calls.append((interval, self._measure))
        self._tickers = [Ticker(clock, seconds, call) for seconds, call in self._calls]
        self._asking: asyncio.Task[None] | None = None
        self._loaded: set[tuple[int, float]] = set()  # the pid of each known worker, and when it was started

    def begin(self) -> None:
        for ticker, (_, call) in zip(self._tickers, self._calls, strict=True):
            ticker.begin()
            call()

    def close(self) -> None:
        for ticker in self._tickers:
            ticker.close()
        if self._asking is not None:
            self._asking.cancel()

    def _measure(self) -> None:
        for name, value in self._host.read().items():
            self._log.of_host(name, value)
        if self._gpus.told and (self._asking is None or self._asking.done()):
            self._asking = asyncio.ensure_future(self._measure_gpus())

    async def _measure_gpus(self) -> None:
        for name, values in gpu_values(await self._gpus.read()).items():
            for index, value in values:
                self._log.of_gpu(name, value, index)

    def write_load_times(self) -> None:
        """Write the time of each worker that has loaded since the last look.

        It is written before a registration that waits for its workers is answered, else within a second, and not of a
        worker that is gone by then.
        """
        found: set[tuple[int, float]] = set()
        for model in self._registry:
            for place, worker in enumerate(model.pool.workers):
                if worker.load_time:
                    found.add((worker.pid, worker.started))
                    if (worker.pid, worker.started) not in self._loaded:
                        name = f"W-{FIRST_WORKER_ID + place}-{model.name}_{model.version}"
                        self._log.of_host("WorkerLoadTime", worker.load_time * 1e3, {"WorkerName": name})
        self._loaded = found
