"""The configuration of throw-away workers: as the daemon starts its own, from its documents."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tsctl.daemon.workers.engine import WorkerSpec


def spec_of(trace: Mapping[str, Any], worker: Mapping[str, Any], batch_size: int) -> WorkerSpec:
    """Return the configuration; the workers' output goes to stderr.

    Args:
        trace, worker: two parts of the daemon's document `/tsctl/worker/MODEL`: what is served, and how workers start.
        batch_size: the most rows in a batch.
    """
    served, python = trace["settings"], worker["python"]
    return WorkerSpec(
        model_name=trace["modelName"],
        model_version=trace["modelVersion"],
        model_dir=Path(worker["directory"]),
        handler=worker["handler"],
        manifest=worker["manifest"],
        batch_size=batch_size,
        startup_timeout=served["startupTimeout"],
        response_timeout=served["responseTimeout"],
        retry=False,
        devices=worker["devices"],
        python=None if python is None else Path(python),
        optimize=worker["optimize"],
        cpus=worker.get("cpus", ()),
        log=lambda text, pid, stream: print(text, file=sys.stderr),  # noqa: T201 - the worker's output
    )
