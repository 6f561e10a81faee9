"""Rows in, answers out: decode requests for a handler, and encode its results.

The rules are TorchServe's (ts/protocol/otf_message_handler.py), with one difference: a result encoded as JSON gets the
content type of JSON, unless the handler set another.
"""

import contextlib
import io
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tsctl.handlers import wire
from tsctl.handlers.requests.excerpt import excerpt
from tsctl.handlers.sdk.errors import InvalidResult, NotSerialisable
from tsctl.handlers.sdk.request_processor import RequestProcessor
from tsctl.handlers.texts.encodable import sendable
from tsctl.handlers.wire import LONGEST_TEXT, MOST_HEADERS

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

    try:
        brought: list[Any] = fetched(items)
    except RecursionError:  # of an item that holds itself, which fails alone where it is encoded
        return items
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
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable{remedy_of(value)}")


def remedy_of(value: Any) -> str:
    """Return what to do about a number that JSON has no form for, behind its error; empty for anything else."""
    kind = "c" if isinstance(value, complex) else value.dtype.kind if _is_scalar(value) else ""
    return _REMEDIES.get(kind, "")


_REMEDIES = {
    "c": ": return the real and the imaginary part as two numbers",
    "f": ": return `float(value)`, or `array.astype(float)` of an array",
}
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


FAILED = "InternalServerException"  # TorchServe's type for every failure in a worker


def decode_rows(rows: Sequence[wire.Row], *, decode: bool) -> list[dict[str, Any]]:
    """Return the dicts that a handler finds in `data`: parameter name → value.

    JSON and text are decoded by content type (case-sensitive); undecodable and all other values are bytearrays.

    Args:
        decode: as `decodes` returns; else all values are bytearrays.
    """
    return [
        {name: _decode(kind, value) if kind and decode else bytearray(value) for name, kind, value in row.params}
        for row in rows
    ]


def _decode(content_type: str, value: bytes | memoryview) -> Any:
    kind = content_type.partition(";")[0].strip()
    try:
        if kind == "application/json":
            return json.loads(bytes(value))
        if kind.startswith("text"):
            return str(value, "utf-8")
    except (ValueError, RecursionError) as error:
        with contextlib.suppress(Exception):  # the handler may have closed stdout, or put something else in its place
            print(f"a body of type {kind} could not be decoded and is passed on as bytes: {error}")  # noqa: T201
    return bytearray(value)


def value_of(row: Any) -> Any:
    """Return the value of a row as the handler finds it: its `data`, else its `body`; of no dict, the row itself."""
    if not isinstance(row, Mapping):
        return row
    value = row.get("data")
    return row.get("body") if value is None else value


def headers_of(row: wire.Row) -> dict[str, Any]:
    """Return the dict behind `context.get_request_header`: headers, and each parameter's content type."""
    headers: dict[str, Any] = {name: {"content-type": kind} for name, kind, _ in row.params}
    headers.update(row.headers)
    return headers


def items_of(result: Any, rows: int) -> list[Any]:
    """Check a handler's result for a number of rows, and return it.

    Raises:
        InvalidResult: the result is not a list with one item for each row.
    """
    if not isinstance(result, list):
        what = f"the handler returned {type(result).__name__}, and should return a list of {rows}"
        raise InvalidResult(f"Invalid model predict output: {what}.")
    items: list[Any] = result if type(result) is list else list(result)  # of a class of its own, with its own methods
    if len(items) != rows:
        what = f"expected {rows}, the handler returned {len(items)}"
        raise InvalidResult(f"number of batch response mismatched: {what}.")
    return items


def encode_item(item: Any, processor: RequestProcessor) -> wire.Answer:
    """Encode the answer to one row.

    bytes stay unchanged, str becomes UTF-8, a tensor the output of `torch.save`, and everything else JSON with an
    indent of two, in which arrays and tensors are lists. An array or tensor becomes JSON or an `.npy` file where the
    client's `Accept` names one of them.

    Raises:
        NotSerialisable: the item cannot be encoded as JSON.
    """
    set_by_handler = processor.get_response_headers()  # nearly always empty
    headers = [(sendable(key), sendable(value)) for key, value in set_by_handler.items()] if set_by_handler else []
    if isinstance(item, (bytes, bytearray)):
        body = bytes(item)
    elif isinstance(item, str):
        body = str.encode(item, "utf-8", "surrogatepass")
    elif is_array(item) and (wanted := wanted_type(processor.get_request_properties().items())):
        try:
            body = to_npy(item) if wanted == NPY else to_json(to_list(item)).encode()
        except (TypeError, ValueError) as error:
            raise NotSerialisable(str(error)) from error
        if not any(name.lower() == "content-type" for name, _ in headers):
            headers.append(("Content-Type", wanted))
    elif (torch := sys.modules.get("torch")) is not None and isinstance(item, torch.Tensor):
        buffer = io.BytesIO()
        torch.save(own(item), buffer)
        body = buffer.getvalue()
    else:
        try:
            body = to_json(item, indented=True).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise NotSerialisable(str(error)) from error
        if not any(name.lower() == "content-type" for name, _ in headers):
            headers.append(("Content-Type", "application/json"))
    status = processor.get_response_status_code()
    if not isinstance(status, int) or not 200 <= status <= 599:
        shown = excerpt(repr(status), 100)
        return failure(f"The handler set the response status {shown}; expected an integer from 200 to 599.")
    for name, value in headers:
        if len(name) > LONGEST_TEXT or len(value) > LONGEST_TEXT:
            return failure(f"The handler set a response header of more than {LONGEST_TEXT} characters: `{name[:100]}`.")
    if len(headers) > MOST_HEADERS:
        return failure(f"The handler set {len(headers)} response headers; at most {MOST_HEADERS} are sent.")
    phrase = processor.get_response_status_phrase()
    return wire.Answer(status, body, sendable(phrase)[:LONGEST_TEXT] if phrase else "", headers)


def failure(message: str, status: int = 503, kind: str = FAILED) -> wire.Answer:
    return wire.Answer(status, message.encode("utf-8", "replace"), error=kind)
