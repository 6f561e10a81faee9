"""The output of workers in TorchServe's files: measurements in model_metrics.log, other lines in model_log.log."""

from collections.abc import Sequence

from tsctl.daemon.core.logs import OutputLog
from tsctl.daemon.extensions.torchserve_logs.files import LineWriter
from tsctl.daemon.extensions.torchserve_logs.lines import MARK, parse_printed
from tsctl.daemon.extensions.torchserve_logs.metric_log import MetricLog
from tsctl.daemon.extensions.torchserve_logs.worker_names import WorkerNames


class OutputCopies:
    """Copies the output of all models' workers.

    Args:
        files: those that get the lines, as in TorchServe model_log.log and ts_log.log.
    """

    def __init__(self, files: Sequence[LineWriter], metrics: MetricLog) -> None:
        self._files = files
        self._metrics = metrics

    def of(self, model: str, version: str) -> OutputLog:
        """Return the receiver of the output of a version's workers."""
        names = WorkerNames(model, version)

        def copy(text: str, pid: int, stream: str) -> None:
            thread = "main" if stream == "daemon" else f"{names.find(pid)}-{stream}"
            level = "INFO" if stream == "stdout" else "WARN"
            for line in text.split("\n"):
                printed = parse_printed(line) if MARK in line else None
                if printed is not None:
                    self._metrics.printed(printed)
                else:
                    for file in self._files:
                        file.write(level, thread, "MODEL_LOG", line)

        return copy
