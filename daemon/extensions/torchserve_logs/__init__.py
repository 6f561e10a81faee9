"""TorchServe's log files, metrics modes and snapshots, for scripts that were written for it.

logs, files   the files, and the lines of the daemon, of requests and of workers in them
selection     which metrics `/metrics` shows, and which go to the files
metric_log    measurements as lines; `periodic_metrics` adds those that no request brings
snapshots     what is registered, as a config.properties from which both servers start
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tsctl.daemon.extension import Extension, Kernel, Service
from tsctl.daemon.setting_values import Setting, grouped, parse_boolean, parse_path, parse_timeout

NAMES = ("access_log", "ts_log", "model_log", "ts_metrics", "model_metrics")
METRICS = ("ts_metrics", "model_metrics")
MODES = ("prometheus", "log", "legacy")


def parse_metrics_mode(text: str) -> str:
    mode = text.strip().lower()
    if mode not in MODES:
        raise ValueError(f"`{text}` is not a metrics mode ({', '.join(MODES)})")
    return mode


def log_targets(
    log_location: Path | None, metrics_location: Path | None, mode: str | None, otherwise: Path
) -> dict[str, Path]:
    """Return the files in these directories; metrics that a mode sends to files are in `otherwise` if in none."""
    if mode in ("log", "legacy"):
        metrics_location = metrics_location or log_location or otherwise
    places = {name: metrics_location if name in METRICS else log_location for name in NAMES}
    return {name: place / f"{name}.log" for name, place in places.items() if place is not None}


class TorchServeLogsExtension(Extension):
    name = "torchserve_logs"
    settings = grouped(
        "Logs and metrics",
        Setting(
            "metrics_mode", None, parse_metrics_mode, "MODE",
            "Where TorchServe's metrics and those of handlers go: prometheus (/metrics), log (ts_metrics.log,"
            " model_metrics.log), or legacy (the three ts_… on /metrics, the others to the files) [default: /metrics,"
            " and the files if a place is named for them].",
            "metrics_mode",
        ),
        Setting(
            "disable_system_metrics", False, parse_boolean, "true|false",
            "Leave out the metrics of the machine: processor, memory, disk, GPUs.", "disable_system_metrics",
        ),
        Setting(
            "model_metrics_auto_detect", None, parse_boolean, "true|false",
            "Show metrics of handlers that are not declared [default: on without --metrics-config].",
            "model_metrics_auto_detect",
        ),
        Setting(
            "log_location", None, parse_path, "DIR",
            "The directory of TorchServe's ts_log.log, model_log.log and access_log.log [default: LOG_LOCATION].",
            theirs="LOG_LOCATION", opens="write",
        ),
        Setting(
            "metrics_location", None, parse_path, "DIR",
            "The directory of TorchServe's ts_metrics.log and model_metrics.log [default: METRICS_LOCATION].",
            theirs="METRICS_LOCATION", opens="write",
        ),
        Setting(
            "log_config", None, parse_path, "FILE",
            "No effect: TorchServe's log4j 2 configuration is not read.",
            vmargs=r"-Dlog4j2?\.configurationFile=(?:file:(?://)?)?(\S+)",
        ),
        Setting(
            "metric_time_interval", 60.0, parse_timeout, "SECONDS",
            "How often the machine is measured for ts_metrics.log.", "metric_time_interval",
        ),
    )  # fmt: skip

    def configure(
        self, values: dict[str, Any], keys: Mapping[str, str], environment: Mapping[str, str]
    ) -> Sequence[str]:
        from tsctl.daemon import paths

        del keys, environment
        values["log_files"] = log_targets(
            values["log_location"], values["metrics_location"], values["metrics_mode"],
            paths.logs_dir(values["state_dir"]),
        )  # fmt: skip
        if values["log_config"] is None:
            return ()
        told = "log4j 2's configuration is not read; `--log-location` and `--metrics-location` name the directories"
        return (f"note: {values['log_config']}: {told} of TorchServe's log files",)

    def install(self, kernel: Kernel) -> Service | None:
        from tsctl.daemon.extensions.torchserve_logs.selection import selection_of

        kernel.observation.selection = selection_of(kernel.config)
        if not kernel.config.log_files and kernel.config.log_location is None:
            return None
        from tsctl.daemon.extensions.torchserve_logs.logs import TorchServeLogsService

        return TorchServeLogsService(kernel)
