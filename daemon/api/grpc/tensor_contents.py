"""Tensors in messages of the Open Inference Protocol: typed contents, or the raw bytes of all tensors."""

import math
from collections.abc import Sequence
from typing import Any

from daemon.api.tensors.elements import pack, slices
from daemon.api.tensors.forms import InferAnswer, InferRequest, Parameters, Tensor, WantedOutput
from daemon.api.tensors.sizes import check_bytes, check_shape
from daemon.api.tensors.steps import Steps, finish
from daemon.core.errors import BadRequest
from daemon.model_settings.declarations import LONGEST_NAME, MOST_TENSORS

# Datatype → the field of InferTensorContents; FP16 and BF16 have none.
_FIELDS = {
    "BOOL": "bool_contents", "INT8": "int_contents", "INT16": "int_contents", "INT32": "int_contents",
    "INT64": "int64_contents", "UINT8": "uint_contents", "UINT16": "uint_contents", "UINT32": "uint_contents",
    "UINT64": "uint64_contents", "FP32": "fp32_contents", "FP64": "fp64_contents", "BYTES": "bytes_contents",
}  # fmt: skip
# Of these, the typed contents stand in a message as the elements do in a tensor, after this tag and their length.
_AS_WRITTEN = {"FP32": b"\x32", "FP64": b"\x3a"}


def read_request(message: Any) -> InferRequest:
    """Return the request of a ModelInferRequest; its outputs are wanted as bytes.

    Raises:
        BadRequest: a tensor's elements are missing, or not what its datatype and shape say.
    """
    if len(message.inputs) > MOST_TENSORS:
        raise BadRequest(f"The request has {len(message.inputs)} inputs; at most {MOST_TENSORS} are read.")
    names = [each.name for each in message.inputs]
    for number, name in enumerate(names):
        if not 0 < len(name) <= LONGEST_NAME:
            raise BadRequest(f"The name of input {number} has {len(name)} characters; expected 1 to {LONGEST_NAME}.")
    if len(set(names)) < len(names):
        raise BadRequest(f"Input {max(names, key=names.count)} is given twice; send each input once.")
    raw = message.raw_input_contents
    if raw and len(raw) != len(message.inputs):
        raise BadRequest(f"raw_input_contents has {len(raw)} values for {len(message.inputs)} inputs.")
    inputs = [_tensor(each, raw[index] if raw else None) for index, each in enumerate(message.inputs)]
    outputs = [WantedOutput(each.name, True, _parameters(each.parameters)) for each in message.outputs]
    return InferRequest(message.id, _parameters(message.parameters), inputs, outputs, True)


def write_answer(answer: InferAnswer, message: Any, *, raw: bool) -> None:
    """Fill a ModelInferResponse all at once; as `write_steps`."""
    finish(write_steps(answer, message, raw=raw))


def write_steps(answer: InferAnswer, message: Any, *, raw: bool) -> Steps[None]:
    """Fill a ModelInferResponse, in steps.

    Args:
        raw: the outputs are raw bytes; without it only where a datatype has no typed contents.
    """
    message.model_name, message.model_version, message.id = answer.model_name, answer.model_version, answer.id
    for name, value in answer.parameters.items():
        _set(message.parameters[name], value)
    raw = raw or any(each.datatype not in _FIELDS for each in answer.outputs)
    for tensor in answer.outputs:
        output = message.outputs.add(name=tensor.name, datatype=tensor.datatype, shape=tensor.shape)
        for name, value in tensor.parameters.items():
            _set(output.parameters[name], value)
        data = tensor.data if isinstance(tensor.data, bytes) else bytes(tensor.data)
        if raw:
            message.raw_output_contents.append(data)
        elif tensor.datatype in _AS_WRITTEN and data:
            output.contents.MergeFromString(_AS_WRITTEN[tensor.datatype] + _length(len(data)) + data)
        else:
            values = getattr(output.contents, _FIELDS[tensor.datatype])
            for slice_ in slices(tensor.datatype, data):
                if values:
                    yield
                values.extend(slice_)


def _tensor(written: Any, raw: bytes | None) -> Tensor:
    what, shape = f"input {written.name}", tuple(written.shape)
    data = _packed(what, written, shape) if raw is None else raw
    if raw is not None and written.HasField("contents"):
        raise BadRequest(f"Input {written.name} has both contents and raw_input_contents.")
    check_bytes(what, written.datatype, shape, data)
    return Tensor(written.name, written.datatype, shape, data, _parameters(written.parameters))


def _packed(what: str, written: Any, shape: Sequence[int]) -> bytes:
    field = _FIELDS.get(written.datatype)
    if field is None:
        if written.datatype in ("FP16", "BF16"):
            raise BadRequest(f"The elements of {what} are {written.datatype}: send them in raw_input_contents.")
        field = "bytes_contents"  # the datatype is unknown, which `pack` says
    values = getattr(written.contents, field)
    count = check_shape(what, shape)
    if len(values) != count:
        raise BadRequest(f"{len(values)} elements in {field} for {what}; its shape {list(shape)} needs {count}.")
    try:
        return pack(written.datatype, list(values))
    except BadRequest as error:
        raise BadRequest(f"The elements of {what}: {error}") from None


def _length(count: int) -> bytes:
    """Return the length of a field, as protobuf writes it (varint)."""
    written = bytearray()
    while count > 0x7F:
        written.append(count & 0x7F | 0x80)
        count >>= 7
    written.append(count)
    return bytes(written)


def _parameters(written: Any) -> Parameters:
    found: Parameters = {}
    if not len(written):
        return found
    for name, value in written.items():
        choice = value.WhichOneof("parameter_choice")
        if choice is None:
            continue
        chosen = getattr(value, choice)
        if choice == "double_param" and not math.isfinite(chosen):
            raise BadRequest(f"The parameter {name[:LONGEST_NAME]} is {chosen}; expected a finite number.")
        found[name] = chosen
    return found


def _set(message: Any, value: bool | int | float | str) -> None:
    kinds = {bool: "bool_param", int: "int64_param", float: "double_param", str: "string_param"}
    setattr(message, kinds[type(value)], value)
