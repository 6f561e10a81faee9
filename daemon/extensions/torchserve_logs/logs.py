"""TorchServe's log files and metrics modes, of a configuration: nothing is opened if the operator wants none."""

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from tsctl.daemon.core.logs import OutputLog, without_secrets
from tsctl.daemon.extension import Kernel, Service
from tsctl.daemon.extensions.exposition.host import HostMonitor
from tsctl.daemon.extensions.torchserve_logs.files import DaemonLines, TorchServeFile
from tsctl.daemon.extensions.torchserve_logs.metric_log import MARK, MetricLog, parse_printed
from tsctl.daemon.extensions.torchserve_logs.periodic_metrics import PeriodicMetrics
from tsctl.daemon.extensions.torchserve_logs.selection import selection_of
from tsctl.daemon.extensions.torchserve_logs.snapshots import TorchServeSnapshots, properties_of
from tsctl.daemon.http.messages import Request
from tsctl.daemon.models.version import ModelVersion

FIRST_NUMBER = 9000
BARE = frozenset(
    {"access_log", "ts_metrics", "model_metrics"}
)  # a time and a text; others have a level, a thread, a logger


def copy_of(files: Sequence[TorchServeFile], metrics: MetricLog, model: str, version: str) -> OutputLog:
    """Return the receiver of the output of a version's workers.

    Args:
        files: those that get the lines, as in TorchServe model_log.log and ts_log.log.
    """
    names = WorkerNames(model, version)

    def copy(text: str, pid: int, stream: str) -> None:
        thread = "main" if stream == "daemon" else f"{names.find(pid)}-{stream}"
        level = "INFO" if stream == "stdout" else "WARN"
        for line in text.split("\n"):
            printed = parse_printed(line) if MARK in line else None
            if printed is not None:
                metrics.printed(printed)
            else:
                for file in files:
                    file.write(level, thread, "MODEL_LOG", line)

    return copy


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class WorkerNames:
    """The names of one version's workers in TorchServe's logs, `W-9000-MODEL_VERSION`.

    The number is the worker's place, not its process: a worker that replaces another gets its number.
    """

    def __init__(self, model: str, version: str, exists: Callable[[int], bool] = exists) -> None:
        self._named = f"{model}_{version}"
        self._exists = exists
        self._numbers: dict[int, int] = {}  # pid → number

    def find(self, pid: int) -> str:
        number = self._numbers.get(pid)
        if number is None:
            self._numbers = {known: number for known, number in self._numbers.items() if self._exists(known)}
            taken = set(self._numbers.values())
            number = next(each for each in range(FIRST_NUMBER, FIRST_NUMBER + len(taken) + 1) if each not in taken)
            self._numbers[pid] = number
        return f"W-{number}-{self._named}"


def access_line(request: Request, status: int, seconds: float) -> str:
    """Return TorchServe's line of a request: `/127.0.0.1:5000 "GET /ping HTTP/1.1" 200 3`, with milliseconds."""
    peer = "127.0.0.1" if request.peer.startswith("pid:") else f"/{request.peer}"
    target = without_secrets(request.target)
    if not target.isprintable():
        target = ascii(target)[1:-1]
    protocol = "HTTP/1.0" if request.http_1_0 else "HTTP/1.1"
    return f'{peer} "{request.method} {target} {protocol}" {status} {int(seconds * 1000)}'


def _write_access(file: TorchServeFile, request: Request, status: int, seconds: float) -> None:
    file.write("INFO", "main", "ACCESS_LOG", access_line(request, status, seconds))


def _metrics_writer(file: TorchServeFile | None) -> Callable[[str], None]:
    if file is None:
        return lambda line: None
    return lambda line: file.write("INFO", "main", "METRICS", line)


class TorchServeLogsService(Service):
    """The files that a configuration wants: nothing is called for those that it does not."""

    def __init__(self, kernel: Kernel) -> None:
        config, observation = kernel.config, kernel.observation
        self._ledger, self._registry = kernel.registrar.ledger, kernel.registry
        files = self._files = {
            name: TorchServeFile(path, kernel.clock, bare=name in BARE) for name, path in config.log_files.items()
        }
        declared = config.metrics_file
        rows = () if declared is None else (*declared.ts_metrics, *declared.model_metrics)
        server, models = _metrics_writer(files.get("ts_metrics")), _metrics_writer(files.get("model_metrics"))
        log = MetricLog(selection_of(config), server, models, {each.name: each.unit for each in rows})
        output = [files[name] for name in ("model_log", "ts_log") if name in files]
        if output or "model_metrics" in files:
            kernel.registrar.factory.logs.copy_of = partial(copy_of, output, log)
        if "access_log" in files:
            observation.requests.copy = partial(_write_access, files["access_log"])
        self._lines = DaemonLines(files["ts_log"], observation.soon) if "ts_log" in files else None
        if self._lines is not None:
            logging.getLogger("tsctl.daemon").addHandler(self._lines)
        self._ledger.changed = self._changed
        self._periodic: PeriodicMetrics | None = None
        if "ts_metrics" in files or "model_metrics" in files:
            observation.metrics.log = log
            interval = None if config.disable_system_metrics else config.metric_time_interval
            self._periodic = PeriodicMetrics(log, kernel.registry, HostMonitor(), kernel.gpus, kernel.clock, interval)
        self._snapshots: TorchServeSnapshots | None = None
        self._serving = self._loaded = False
        if config.log_location is not None and config.restore:
            folder, properties = config.log_location / "config", properties_of(config)
            self._snapshots = TorchServeSnapshots(folder, kernel.registry, config.model_store, properties)

    def begin(self) -> None:
        if self._periodic is not None:
            self._periodic.begin()
        self._serving = True
        self._changed(self._ledger.unsettled)

    def _changed(self, unsettled: Iterable[ModelVersion]) -> None:
        """Write what is registered, once all that is served from the start is loaded, or has failed.

        The load times of workers, too: a script that has waited for a registration looks for them at once.
        """
        if self._periodic is not None:
            self._periodic.write_load_times()
        if self._snapshots is None or not self._serving:
            return
        if self._registry.expected:  # those that are not loaded yet would be forgotten
            return
        if self._loaded:
            self._snapshots.changed(unsettled)
        else:
            self._loaded = True
            self._snapshots.write("startup", unsettled)

    async def settle(self, *, replaced: bool) -> None:
        if self._periodic is not None:
            self._periodic.write_load_times()
        if self._snapshots is not None and not replaced:
            self._serving = False
            if not self._registry.expected:
                self._snapshots.write("shutdown", self._ledger.unsettled)

    def close(self) -> None:
        if self._periodic is not None:
            self._periodic.close()
        if self._lines is not None:
            logging.getLogger("tsctl.daemon").removeHandler(self._lines)
            self._lines.close()
        for each in self._files.values():
            each.close()
