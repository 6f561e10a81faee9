"""Arrays and tensors in answers: as JSON, or as an `.npy` file, where the client's `Accept` names one of the two."""

import io
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


def to_list(value: Any) -> Any:
    """Return the values of an array or tensor as nested lists."""
    return value.detach().tolist() if hasattr(value, "detach") else value.tolist()


def _as_numpy(value: Any) -> Any:
    if not hasattr(value, "detach"):
        return value
    tensor = value.detach().cpu().resolve_conj().resolve_neg()
    try:
        return tensor.numpy()
    except TypeError:  # NumPy lacks bfloat16
        return tensor.float().numpy()


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
