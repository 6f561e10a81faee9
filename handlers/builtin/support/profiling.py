"""ENABLE_TORCH_PROFILER: run each batch under torch's profiler, as TorchServe's BaseHandler does.

The trace goes to `<temporary directory>/pytorch_profiler/<model>`, for chrome://tracing or Perfetto, and a table of the
ten most expensive operations to the model's log. A handler may override both in `profiler_args`, the arguments of
`torch.profiler.profile`.
"""

import logging
import os
import tempfile
from pathlib import Path
from typing import Any

import torch

_log = logging.getLogger(__name__)
_ROWS = 10


def wanted() -> bool:
    """Return whether ENABLE_TORCH_PROFILER is set; any value counts, as in TorchServe."""
    return bool(os.environ.get("ENABLE_TORCH_PROFILER"))


def run_profiled(handler: Any, data: list[Any], *, explains: bool) -> tuple[list[Any], torch.profiler.profile]:
    """Run the stages under the profiler, each recorded under its name: of a prediction, or of an explanation."""
    with torch.profiler.profile(**_arguments(handler)) as profile:
        with torch.profiler.record_function("preprocess"):
            prepared = handler.preprocess(data)
        if explains:
            with torch.profiler.record_function("explain"):
                items: list[Any] = handler.explain_handle(prepared, data)
        else:
            with torch.profiler.record_function("inference"):
                output = handler.inference(prepared)
            with torch.profiler.record_function("postprocess"):
                items = handler.postprocess(output)
    _log.info(profile.key_averages().table(sort_by="cpu_time_total", row_limit=_ROWS))
    return items, profile


def _arguments(handler: Any) -> dict[str, Any]:
    arguments: dict[str, Any] = handler.profiler_args
    if not arguments:
        arguments.update(activities=torch.profiler.supported_activities(), record_shapes=True)
    if "on_trace_ready" not in arguments:
        # A handler's own `initialize` may leave its manifest out.
        model = (handler.manifest or {}).get("model", {}).get("modelName", "")
        folder = Path(tempfile.gettempdir(), "pytorch_profiler", model)
        arguments["on_trace_ready"] = torch.profiler.tensorboard_trace_handler(str(folder))
    return arguments
