"""The operator's choice among TorchServe's metrics, which `/metrics` and the lines in files obey."""

from tsctl.daemon.config.config import Config
from tsctl.daemon.config.metrics_file import models_metrics
from tsctl.daemon.metrics.torchserve.selection import Selection


def selection_of(config: Config) -> Selection:
    """Return the operator's choice among TorchServe's metrics."""
    file = config.metrics_file
    return Selection(
        config.metrics_mode,
        None if file is None else {each.name: each.dimensions for each in file.ts_metrics},
        models_metrics(file, config.model_metrics_auto_detect),
        None if file is None else {each.name: each.kind for each in (*file.ts_metrics, *file.model_metrics)},
        {each.name: each.dimensions for each in config.model_metrics},
        machine=not config.disable_system_metrics,
    )
