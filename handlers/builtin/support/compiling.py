"""`torch.compile`, if `model-config.yaml` asks for it.

    pt2: {compile: {enable: true, backend: inductor, mode: reduce-overhead}}

TorchServe's older forms, `pt2: inductor` and `pt2: {backend: inductor}`, mean the same. A model that cannot be compiled
is served uncompiled, with a warning.
"""

import logging
from collections.abc import Mapping
from typing import Any

_log = logging.getLogger(__name__)

# The names that TorchServe accepts.
BACKENDS = frozenset({
    "eager", "aot_eager", "inductor", "nvfuser", "aot_nvfuser", "aot_cudagraphs", "ofi", "fx2trt", "onnxrt", "ipex",
    "torchxla_trace_once", "openvino", "tensorrt", "hpu_backend",
})  # fmt: skip


def check_valid_pt2_backend(backend: str) -> bool:
    """Return whether a name is one of TorchServe's backends of torch.compile; log a warning if not."""
    if backend in BACKENDS:
        return True
    _log.warning("%s is not a backend of torch.compile in TorchServe: %s", backend, ", ".join(sorted(BACKENDS)))
    return False


def compile_options(config: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the arguments for `torch.compile` from a `model-config.yaml`; None to leave the model uncompiled.

    Raises:
        ValueError: `pt2` is neither a string nor a mapping.
    """
    value = config.get("pt2")
    if value is None:
        return None
    if isinstance(value, str):
        return {"backend": value}
    if not isinstance(value, Mapping):
        raise ValueError(f"`pt2` in model-config.yaml should be a mapping or a string, not {value!r}")
    if "compile" in value:
        options = dict(value["compile"] or {})
        return options if options.pop("enable", False) is True else None
    return None if "export" in value or not value else dict(value)


def compiled(model: Any, config: Mapping[str, Any]) -> Any:
    """Return the model, compiled as `model-config.yaml` says."""
    options = compile_options(config)
    if options is None or ("backend" in options and not check_valid_pt2_backend(options["backend"])):
        return model
    try:
        import torch._dynamo

        # Code is generated at the first batch: a failure then falls back to the uncompiled model.
        torch._dynamo.config.suppress_errors = True
        model = torch.compile(model, **options)
    except Exception as error:  # noqa: BLE001 - backends raise anything; the model runs without them
        _log.warning("the model could not be compiled with %s, and is served as it is: %s", options, error)
    else:  # TorchServe's sentence, which scripts look for
        _log.info("Compiled model with %s", ", ".join(f"{name} {value}" for name, value in options.items()))
    return model
