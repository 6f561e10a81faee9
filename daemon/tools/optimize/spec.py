"""The configuration of throw-away workers: as the daemon starts its own, from its document."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tsctl.daemon.workers.engine import WorkerSpec


def spec_of(model: Mapping[str, Any], batch_size: int) -> WorkerSpec:
    """Return the configuration; the workers' output goes to stderr.

    Args:
        model: as in the order.
        batch_size: the most rows in a batch.
    """
    served, python = model["settings"], model["python"]
    return WorkerSpec(
        model_name=model["modelName"],
        model_version=model["modelVersion"],
        model_dir=Path(model["directory"]),
        handler=model["handler"],
        manifest=model["manifest"],
        batch_size=batch_size,
        startup_timeout=served["startupTimeout"],
        response_timeout=served["responseTimeout"],
        retry=False,
        devices=model["devices"],
        python=None if python is None else Path(python),
        optimize=model["optimize"],
        cpus=model.get("cpus", ()),
        log=lambda text, pid, stream: print(text, file=sys.stderr),  # noqa: T201 - the worker's output
    )
