"""Arrays and tensors in answers: as JSON, or as an `.npy` file, where the client's `Accept` names one of the two.

Within other values they are lists in JSON, and NumPy's scalars are numbers. JSON has no NaN and no infinity: null.
"""

import io
import json
import math
import sys
from collections.abc import Iterable
from typing import Any

NPY = "application/x-npy"
JSON = "application/json"


def is_array(value: Any) -> bool:
    """Return whether a value is a NumPy array or a torch tensor; imports neither."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    return (numpy is not None and isinstance(value, numpy.ndarray)) or (
        torch is not None and isinstance(value, torch.Tensor)
    )


def wanted_type(headers: Iterable[tuple[str, Any]]) -> str:
    """Return the type of an array that a request's `Accept` names: `NPY`, `JSON`, or empty for neither.

    Of two, the one with the higher quality, else the first.
    """
    best, quality = "", 0.0
    accept = next((value for name, value in headers if name.lower() == "accept" and isinstance(value, str)), "")
    for choice in accept.split(",") if accept else ():
        kind, *parameters = (each.strip().lower() for each in choice.split(";"))
        weight = next((_number(each[2:]) for each in parameters if each.startswith("q=")), 1.0)
        if kind in (NPY, JSON) and weight > quality:
            best, quality = kind, weight
    return best


def to_npy(value: Any) -> bytes:
    """Encode an array or tensor as an `.npy` file, without pickle.

    Raises:
        ValueError: the array holds objects.
    """
    import numpy as np

    buffer = io.BytesIO()
    np.save(buffer, _as_numpy(value), allow_pickle=False)
    return buffer.getvalue()


def in_memory(items: list[Any]) -> list[Any]:
    """Return what a handler answers to the rows of a batch, with tensors on GPUs in main memory, copied together."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return items
    from tsctl.handlers.requests.gpu_copies import fetched

    brought: list[Any] = fetched(items)
    return brought


def own(tensor: Any) -> Any:
    """Return a tensor for `torch.save`, which writes all that is in its memory: a row's has the whole batch."""
    if tensor.is_cuda:
        tensor = _in_memory(tensor)
    torch = sys.modules["torch"]
    if tensor.layout is not torch.strided or tensor.untyped_storage().nbytes() <= tensor.nbytes:
        return tensor
    return tensor.detach().clone()


def to_list(value: Any) -> Any:
    """Return the values of an array or tensor as nested lists."""
    return _in_memory(value).tolist()


def to_json(value: Any, *, indented: bool = False) -> str:
    """Encode a value as JSON, with arrays, tensors and NumPy's scalars in it; NaN and infinities are null.

    Raises:
        TypeError: JSON has no form for the value.
        ValueError: a list or dict holds itself.
        RecursionError: the value is nested too deeply.
    """
    encoder = _INDENTED if indented else _COMPACT
    try:
        return encoder.encode(value)
    except (TypeError, ValueError) as error:
        # The encoder cannot replace these itself; to look for them in every answer would take as long as to encode it.
        if not str(error).startswith((_NOT_FINITE, _ODD_KEY)):
            raise
    return encoder.encode(_plain(value))


def _plain(value: Any) -> Any:
    """Return a value with null for NaN and infinities, lists for arrays, and keys that JSON takes."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {_key(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if is_array(value) or _is_scalar(value):
        return _plain(_unpacked(value))
    return value


def _key(key: Any) -> Any:
    key = key.item() if _is_scalar(key) else key
    return json.dumps(key) if isinstance(key, float) and not math.isfinite(key) else key


def _is_scalar(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.generic)


def _unpacked(value: Any) -> Any:
    """Return what JSON has for a value that its encoder does not know."""
    if is_array(value):
        return to_list(value)
    if _is_scalar(value):
        plain = value.item()
        if not isinstance(plain, type(value)):  # longdouble has none
            return plain
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


_NOT_FINITE, _ODD_KEY = "Out of range float values", "keys must be"  # how errors of Python's encoder begin
_COMPACT = json.JSONEncoder(allow_nan=False, default=_unpacked)
_INDENTED = json.JSONEncoder(allow_nan=False, default=_unpacked, indent=2)


def _in_memory(value: Any) -> Any:
    """Return an array as it is, and a tensor without its history, in main memory."""
    if not hasattr(value, "detach"):
        return value
    tensor = value.detach()
    if not tensor.is_cuda:
        return tensor.cpu()
    from tsctl.handlers.requests.gpu_copies import on_host

    return on_host(tensor)


def _as_numpy(value: Any) -> Any:
    if not hasattr(value, "detach"):
        return value
    tensor = _in_memory(value).resolve_conj().resolve_neg()
    try:
        return tensor.numpy()
    except TypeError:  # NumPy lacks bfloat16
        return tensor.float().numpy()


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
