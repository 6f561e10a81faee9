"""`timed`: report the duration of a handler's stage as a metric.

Only if `model-config.yaml` sets `handler: {profile: true}`, as in TorchServe.
"""

import functools
import time
from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

from tsctl.handlers.sdk.gpu import wait_for_gpus

P = ParamSpec("P")
Self = TypeVar("Self")
Result = TypeVar("Result")


def timed(stage: Callable[Concatenate[Self, P], Result]) -> Callable[Concatenate[Self, P], Result]:
    """Report a method's duration in ms as the metric `ts_handler_NAME`.

    The method's object needs an attribute `context`, which may be None.
    """

    @functools.wraps(stage)
    def wrapper(self: Self, *args: P.args, **kwargs: P.kwargs) -> Result:
        context: Any = getattr(self, "context", None)
        if not _profiled(context):
            return stage(self, *args, **kwargs)
        wait_for_gpus()  # queued work would otherwise count for a later stage
        began = time.perf_counter()
        result = stage(self, *args, **kwargs)
        wait_for_gpus()
        context.metrics.add_time(f"ts_handler_{stage.__name__}", (time.perf_counter() - began) * 1000)
        return result

    return wrapper  # type: ignore[return-value]  # a method's first parameter has no name to callers


def _profiled(context: Any) -> bool:
    config = getattr(context, "model_yaml_config", None)
    handler = config.get("handler") if isinstance(config, Mapping) else None
    return isinstance(handler, Mapping) and bool(handler.get("profile"))
