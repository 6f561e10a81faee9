"""ONNX models, run by onnxruntime if installed."""

import logging
from pathlib import Path
from typing import Any

import torch

from tsctl.handlers.sdk.errors import HandlerError

CUDA = "CUDAExecutionProvider"
_log = logging.getLogger(__name__)


def load_session(path: Path, device: torch.device) -> Any:
    """Open an ONNX file.

    Returns:
        An `onnxruntime.InferenceSession`: on the GPU if `device` is one and onnxruntime can use it, else the CPU.

    Raises:
        HandlerError: onnxruntime is not installed, or cannot read the file.
    """
    try:
        import onnxruntime
    except ModuleNotFoundError:
        raise HandlerError(
            f"`{path.name}` is an ONNX model, and needs onnxruntime: pip install 'tsctl[onnx]'"
        ) from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()  # the default is every core of the machine
    providers: list[Any] = ["CPUExecutionProvider"]
    if device.type == "cuda":
        if CUDA in onnxruntime.get_available_providers():
            providers.insert(0, (CUDA, {"device_id": device.index or 0}))
        else:
            _log.warning(
                "%s runs on the CPU: onnxruntime %s has no %s, which the package onnxruntime-gpu has",
                path.name,
                onnxruntime.__version__,
                CUDA,
            )
    try:
        return onnxruntime.InferenceSession(str(path), sess_options=options, providers=providers)
    except Exception as error:  # onnxruntime's errors have no common base class
        raise HandlerError(f"`{path.name}` is not an ONNX model that onnxruntime can run: {error}") from error


def is_session(model: Any) -> bool:
    return type(model).__module__.startswith("onnxruntime.")


def run_session(session: Any, *inputs: torch.Tensor) -> Any:
    """Run a session on its inputs, in order, with their shapes and dtypes unchanged.

    Returns:
        The output as a tensor on the CPU; a list of tensors if the model has several outputs.
    """
    names = [each.name for each in session.get_inputs()]
    feed = {name: tensor.numpy(force=True) for name, tensor in zip(names, inputs, strict=True)}
    outputs = [torch.from_numpy(each) for each in session.run(None, feed)]
    return outputs[0] if len(outputs) == 1 else outputs
