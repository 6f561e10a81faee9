"""The output of workers in TorchServe's files: measurements in model_metrics.log, other lines in model_log.log."""

import os
from collections.abc import Callable, Sequence

from tsctl.daemon.core.logs import OutputLog
from tsctl.daemon.extensions.torchserve_logs.files import LineWriter
from tsctl.daemon.extensions.torchserve_logs.lines import MARK, parse_printed
from tsctl.daemon.extensions.torchserve_logs.metric_log import MetricLog

FIRST_NUMBER = 9000


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


def exists(pid: int) -> bool:
    """Return whether a process exists."""
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
        """Return the name of the worker with this process."""
        number = self._numbers.get(pid)
        if number is None:
            self._numbers = {known: number for known, number in self._numbers.items() if self._exists(known)}
            taken = set(self._numbers.values())
            number = next(each for each in range(FIRST_NUMBER, FIRST_NUMBER + len(taken) + 1) if each not in taken)
            self._numbers[pid] = number
        return f"W-{number}-{self._named}"
