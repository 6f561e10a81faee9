"""Encoding of what a handler returns for an inference request: JSON, and the bytes of some outputs after it."""

import struct
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from tsctl.handlers import wire
from tsctl.handlers.requests.rows import encode_item
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import InvalidResult, NotSerialisable
from tsctl.handlers.sdk.request_processor import RequestProcessor
from tsctl.handlers.tensor_heads import InferHead
from tsctl.handlers.tensors.datatypes import BF16, BYTES, DTYPES, datatype_of

HEAD_LENGTH, SIZE = "Inference-Header-Content-Length", "binary_data_size"
OUTPUT = "output"  # the name of a bare answer, where the archive declares no outputs
_OWN = ("content-type", HEAD_LENGTH.lower())
_FLOATS = ("FP16", "FP32", "FP64", BF16)


def encode_outputs(
    item: Any,
    infer: InferHead,
    declared: Sequence[Mapping[str, Any]],
    context: Context,
    processor: RequestProcessor,
) -> wire.Answer:
    """Encode the answer to one row.

    Args:
        item: output → array, tensor or list; or a bare one of these, where there is one output.
        declared: the outputs of the archive's model-config.yaml; empty if it declares none.

    Raises:
        InvalidResult: an output is unknown, or not as declared; or the row asks for one that is missing and not
            optional; or there is none at all.
        NotSerialisable: the protocol, or JSON, cannot hold an output.
    """
    if processor.get_response_status_code() >= 400:
        return encode_item(item, processor)  # the handler's own words about what went wrong
    values = _by_name(item, declared)
    declarations = {each["name"]: each for each in declared}
    wanted = [each.name for each in infer.outputs] or [name for name in declarations or values if name in values]
    if not infer.outputs and not wanted:
        wanted = [name for name, each in declarations.items() if not each.get("optional")]  # one is named as missing
    binary = {each.name: each.binary for each in infer.outputs}
    document: dict[str, Any] = {"model_name": context.model_name, "model_version": _version(context)}
    if infer.id:
        document["id"] = infer.id
    outputs: list[dict[str, Any]] = []
    follows: list[bytes] = []
    for name in wanted:
        if name not in values:
            if declarations.get(name, {}).get("optional"):
                continue
            raise InvalidResult(f"Invalid model predict output: the handler returned no {name}, but {_names(values)}.")
        datatype, array = _array_of(name, values[name], declarations.get(name))
        described = {"name": name, "datatype": datatype, "shape": list(array.shape)}
        if binary.get(name, infer.binary):
            data = bytes_of(datatype, array)
            follows.append(data)
            outputs.append(described | {"parameters": {SIZE: len(data)}})
        else:
            outputs.append(described | {"data": _list_of(name, datatype, array)})
    head = msgspec.json.encode(document | {"outputs": outputs})
    answer = encode_item(b"".join((head, *follows)), processor)
    own = (
        [("Content-Type", "application/octet-stream"), (HEAD_LENGTH, str(len(head)))]
        if follows
        else [("Content-Type", "application/json")]
    )
    answer.headers = [each for each in answer.headers if each[0].lower() not in _OWN] + own
    return answer


def _version(context: Context) -> str:
    return str(context.manifest.get("model", {}).get("modelVersion") or "")


def _by_name(item: Any, declared: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    if isinstance(item, Mapping):
        values = {str(name): value for name, value in item.items()}
        names = [each["name"] for each in declared]
        if unknown := [name for name in values if names and name not in names]:
            sentence = f"the handler returned {unknown[0]}, but model-config.yaml declares {_names(names)}"
            raise InvalidResult(f"Invalid model predict output: {sentence}.")
        return values
    if len(declared) > 1:
        sentence = (
            f"the handler returned {type(item).__name__}; expected a dict with {_names(x['name'] for x in declared)}"
        )
        raise InvalidResult(f"Invalid model predict output: {sentence}.")
    return {declared[0]["name"] if declared else OUTPUT: item}


def _names(names: Iterable[str]) -> str:
    return ", ".join(names) or "nothing"


def _array_of(name: str, value: Any, declared: Mapping[str, Any] | None) -> tuple[str, Any]:
    """Return the datatype and the array of an output.

    Raises:
        InvalidResult: the output is not as declared.
        NotSerialisable: no datatype of the protocol holds it.
    """
    wanted = declared["datatype"] if declared is not None else None
    datatype, array = _read(name, value, wanted)
    if declared is None:
        return datatype, array
    shape: list[int] = declared["shape"]
    fits = len(shape) == array.ndim and all(size in (-1, found) for size, found in zip(shape, array.shape, strict=True))
    if datatype != wanted or not fits:
        found = f"{datatype} of shape {list(array.shape)}"
        sentence = f"the output {name} is {found}; model-config.yaml declares {wanted} of shape {shape}"
        raise InvalidResult(f"Invalid model predict output: {sentence}.")
    return datatype, array


def _read(name: str, value: Any, wanted: str | None) -> tuple[str, Any]:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        tensor = value.detach().cpu().resolve_conj().resolve_neg()
        if tensor.dtype == torch.bfloat16:
            return BF16, tensor.float().numpy()
        value = tensor.numpy()
    is_array = isinstance(value, np.ndarray | np.generic)
    try:
        array = np.asarray(value) if is_array else _untyped(value) if wanted is None else _typed(value, wanted)
    except (TypeError, ValueError, OverflowError) as error:
        what = f"no array of {wanted}" if wanted else "no array"
        raise NotSerialisable(f"The output {name} is {what}: {error}") from error
    datatype = datatype_of(array)
    if wanted == BF16 and datatype == "FP32":
        datatype = BF16
    if datatype is None:
        raise NotSerialisable(f"The output {name} has the element type {array.dtype}, which the protocol lacks.")
    return datatype, array


def _untyped(value: Any) -> Any:
    array = np.asarray(value)
    return array if array.dtype.kind not in "US" else np.asarray(value, dtype=object)  # U and S drop NUL at the end


def _typed(value: Any, wanted: str) -> Any:
    """Return a list, or a single value, as an array of the declared datatype; never a rounded or wrapped number."""
    if wanted == BYTES:
        return np.asarray(value, dtype=object)
    array = np.asarray(value)
    made = array.astype(DTYPES[wanted], casting="unsafe") if array.size else np.empty(array.shape, DTYPES[wanted])
    if wanted not in _FLOATS and not np.array_equal(made, array):
        raise ValueError("an element is out of the range of the datatype, or is no whole number")
    return made


def bytes_of(datatype: str, array: Any) -> bytes:
    """Return the bytes of an array whose elements the datatype holds."""
    if datatype == BYTES:
        return b"".join(struct.pack("<I", len(each)) + each for each in map(_element, array.reshape(-1)))
    if datatype == BF16:
        return _upper_halves(array)
    return bytes(array.astype(DTYPES[datatype], copy=False).tobytes())


def _upper_halves(array: Any) -> bytes:
    """Return FP32 as BF16, rounded to the nearest even."""
    words = np.ascontiguousarray(array, "<f4").view("<u4")
    rounded = (words + 0x7FFF + ((words >> 16) & 1)) >> 16
    return bytes(np.where(np.isnan(array), (words >> 16) | 0x40, rounded).astype("<u2").tobytes())


def _list_of(name: str, datatype: str, array: Any) -> list[Any]:
    if datatype == BYTES:
        try:
            return [str(_element(each), "utf-8") for each in array.reshape(-1)]
        except UnicodeDecodeError:
            raise NotSerialisable(
                f"The output {name} has bytes that are no UTF-8, which JSON cannot hold: ask for binary data."
            ) from None
    if datatype in _FLOATS and not np.isfinite(array).all():
        raise NotSerialisable(
            f"The output {name} has elements that are NaN or infinite, which JSON cannot hold: ask for binary data."
        )
    values: list[Any] = array.reshape(-1).tolist()
    return values


def _element(value: Any) -> bytes:
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    return str(value).encode("utf-8", "surrogatepass")
