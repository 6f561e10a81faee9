"""TorchServe's files as a service of the daemon."""

from tsctl.daemon.core.machine.host import HostMonitor
from tsctl.daemon.extension import Kernel, Service
from tsctl.daemon.extensions.torchserve_logs.logs import TorchServeLogs
from tsctl.daemon.extensions.torchserve_logs.periodic_metrics import PeriodicMetrics
from tsctl.daemon.extensions.torchserve_logs.snapshots import TorchServeSnapshots, properties_of


class TorchServeLogsService(Service):
    def __init__(self, kernel: Kernel) -> None:
        config = kernel.config
        self._ledger = kernel.registrar.ledger
        self._logs = TorchServeLogs(config, kernel.selection, kernel.clock, kernel.soon)
        self.answered, self.copy = self._logs.answered, self._logs.copy
        self._periodic: PeriodicMetrics | None = None
        kernel.metrics.log = log = self._logs.metrics
        if log is not None:
            interval = None if config.disable_system_metrics else config.metric_time_interval
            self._periodic = PeriodicMetrics(
                log, kernel.registry, kernel.events, HostMonitor(), kernel.gpus, kernel.clock, interval
            )
        self._snapshots: TorchServeSnapshots | None = None
        self._loaded = False
        if config.log_location is not None and config.restore:
            folder, properties = config.log_location / "config", properties_of(config)
            self._snapshots = TorchServeSnapshots(folder, kernel.registry, config.model_store, properties)

    def begin(self) -> None:
        if self._periodic is not None:
            self._periodic.begin()

    def loaded(self) -> None:
        if self._snapshots is not None:
            self._loaded = True
            self._snapshots.write("startup", self._ledger.unsettled)
            self._ledger.saved = self._snapshots.changed

    async def settle(self, *, replaced: bool) -> None:
        if self._snapshots is not None and not replaced:
            self._ledger.saved = lambda unsettled: None
            if self._loaded:  # else models that are not loaded yet would be forgotten
                self._snapshots.write("shutdown", self._ledger.unsettled)

    def close(self) -> None:
        if self._periodic is not None:
            self._periodic.close()
        self._logs.close()
