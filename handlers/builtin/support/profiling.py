"""ENABLE_TORCH_PROFILER: run each batch under torch's profiler, as TorchServe's BaseHandler does.

The trace goes to `<temporary directory>/pytorch_profiler/<model>`, for chrome://tracing or Perfetto, and a table of the
ten most expensive operations to the model's log. A handler may override both in `profiler_args`, the arguments of
`torch.profiler.profile`.
"""

import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import torch

AVAILABLE = True  # TorchServe's PROFILER_AVAILABLE, which tests of handlers import

_log = logging.getLogger(__name__)
_ROWS = 10


class Profiled(Protocol):
    """The part of a handler that is used here."""

    manifest: dict[str, Any]
    profiler_args: dict[str, Any]

    def preprocess(self, data: list[Any]) -> Any: ...

    def inference(self, data: Any) -> Any: ...

    def postprocess(self, data: Any) -> list[Any]: ...


def wanted() -> bool:
    """Return whether ENABLE_TORCH_PROFILER is set; any value counts, as in TorchServe."""
    return bool(os.environ.get("ENABLE_TORCH_PROFILER"))


def predict_profiled(handler: Profiled, data: list[Any]) -> list[Any]:
    """Run the three stages under the profiler, each recorded under its name."""
    with torch.profiler.profile(**_arguments(handler)) as profile:
        with torch.profiler.record_function("preprocess"):
            prepared = handler.preprocess(data)
        with torch.profiler.record_function("inference"):
            output = handler.inference(prepared)
        with torch.profiler.record_function("postprocess"):
            items = handler.postprocess(output)
    _log.info(profile.key_averages().table(sort_by="cpu_time_total", row_limit=_ROWS))
    return items


def _arguments(handler: Profiled) -> dict[str, Any]:
    arguments = handler.profiler_args
    if not arguments:
        arguments.update(activities=torch.profiler.supported_activities(), record_shapes=True)
    if "on_trace_ready" not in arguments:
        arguments["on_trace_ready"] = _trace_writer(_name_of(handler))
    return arguments


def _name_of(handler: Profiled) -> str:
    """Return the model's name; empty where a handler's own `initialize` leaves its manifest out."""
    name: str = (handler.manifest or {}).get("model", {}).get("modelName", "")
    return name


def _trace_writer(model: str) -> Callable[..., None]:
    folder = Path(tempfile.gettempdir(), "pytorch_profiler", model)
    writer: Callable[..., None] = torch.profiler.tensorboard_trace_handler(str(folder))
    return writer
