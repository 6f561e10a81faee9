"""Tensors in messages of the Open Inference Protocol: typed contents, or the raw bytes of all tensors."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from tsctl.daemon.core.arena import Payload, Take, share_steps
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.steps import Steps
from tsctl.daemon.extensions.grpc.protos.contents import pack_contents
from tsctl.daemon.extensions.grpc.protos.limits import MOST_PARAMETERS, write_number
from tsctl.daemon.extensions.tensors.elements import size_of, slices
from tsctl.daemon.extensions.tensors.forms import InferAnswer, InferRequest, Parameters, Tensor, WantedOutput
from tsctl.daemon.extensions.tensors.parameters import OF_INPUTS, OF_OUTPUTS, check_served
from tsctl.daemon.extensions.tensors.sizes import check_shape, check_steps
from tsctl.daemon.model_settings.declarations import LONGEST_NAME, MOST_TENSORS

# Datatype → the field of InferTensorContents; FP16 and BF16 have none.
_FIELDS = {
    "BOOL": "bool_contents", "INT8": "int_contents", "INT16": "int_contents", "INT32": "int_contents",
    "INT64": "int64_contents", "UINT8": "uint_contents", "UINT16": "uint_contents", "UINT32": "uint_contents",
    "UINT64": "uint64_contents", "FP32": "fp32_contents", "FP64": "fp64_contents", "BYTES": "bytes_contents",
}  # fmt: skip
# The numbers of these fields.
_NUMBERS = {
    "bool_contents": 1, "int_contents": 2, "int64_contents": 3, "uint_contents": 4, "uint64_contents": 5,
    "fp32_contents": 6, "fp64_contents": 7, "bytes_contents": 8,
}  # fmt: skip
_AT_ONCE = 64  # tensors
# Of these, the typed contents stand in a message as the elements do in a tensor, after this tag and their length.
_AS_WRITTEN = {"FP32": b"\x32", "FP64": b"\x3a"}


def read_steps(message: Any, take: Take | None = None) -> Steps[InferRequest]:
    """Return, in steps, the request of a ModelInferRequest, as `request_class` has it; its outputs are wanted as bytes.

    Args:
        take: returns a place in the arena for the elements, as in `Gathered`.

    Raises:
        BadRequest: there are too many tensors or parameters, or one of these is not served; or a tensor's elements are
            missing, or not what its datatype and shape say.
    """
    for written, what in ((message.inputs, "inputs"), (message.outputs, "outputs")):
        if len(written) > MOST_TENSORS:
            raise BadRequest(f"The request has {len(written)} {what}; at most {MOST_TENSORS} are read.")
    names: set[str] = set()
    for number, each in enumerate(message.inputs):
        name = each.name
        if not 0 < len(name) <= LONGEST_NAME:
            raise BadRequest(f"The name of input {number} has {len(name)} characters; expected 1 to {LONGEST_NAME}.")
        if name in names:
            raise BadRequest(f"Input {name} is given twice; send each input once.")
        names.add(name)
        if len(each.parameters):
            check_served(f"Input {name}", each.parameters, OF_INPUTS)
    raw = message.raw_input_contents  # checked after the parameters: a tensor elsewhere has none
    if raw and len(raw) != len(message.inputs):
        raise BadRequest(f"raw_input_contents has {len(raw)} values for {len(message.inputs)} inputs.")
    inputs: list[Tensor] = []
    for number, each in enumerate(message.inputs):
        tensor = yield from _tensor(each, raw[number] if raw else None, take)
        inputs.append(tensor)
        if not len(inputs) % _AT_ONCE:
            yield
    outputs: list[WantedOutput] = []
    for each in message.outputs:
        if len(each.parameters):
            check_served(f"Output {each.name[:LONGEST_NAME]}", each.parameters, OF_OUTPUTS)
        outputs.append(WantedOutput(each.name, True, _parameters(each.parameters)))
        if not len(outputs) % _AT_ONCE:
            yield
    return InferRequest(message.id, _parameters(message.parameters), inputs, outputs, True)


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
            output.contents.MergeFromString(_AS_WRITTEN[tensor.datatype] + write_number(len(data)) + data)
        else:
            values = getattr(output.contents, _FIELDS[tensor.datatype])
            for slice_ in slices(tensor.datatype, data):
                if values:
                    yield
                values.extend(slice_)


def _tensor(written: Any, raw: bytes | None, take: Take | None) -> Steps[Tensor]:
    what, shape = f"input {written.name}", tuple(written.shape)
    data: Payload
    if raw is None:
        data = yield from _packed(what, written, shape, take)
    else:
        if written.contents:
            raise BadRequest(f"Input {written.name} has both contents and raw_input_contents.")
        data = yield from share_steps(raw, take)
        yield from check_steps(what, written.datatype, shape, data)
    return Tensor(written.name, written.datatype, shape, data, _parameters(written.parameters))


def _packed(what: str, written: Any, shape: Sequence[int], take: Take | None) -> Steps[Payload]:
    field = _FIELDS.get(written.datatype)
    if field is None:
        if written.datatype in ("FP16", "BF16"):
            raise BadRequest(f"The elements of {what} are {written.datatype}: send them in raw_input_contents.")
        size_of(written.datatype)  # unknown, as the error says
    assert field is not None
    count = check_shape(what, shape)
    try:
        data, found = yield from pack_contents(
            written.datatype, written.contents, _NUMBERS[field], _reader(field), count, take
        )
    except BadRequest as error:
        raise BadRequest(f"The elements of {what}: {error}") from None
    if found != count:
        more = "more" if found > count else str(found)
        raise BadRequest(f"{more} elements in {field} for {what}; its shape {list(shape)} needs {count}.")
    return data


def _reader(field: str) -> Callable[[bytes], list[Any]]:
    """Return what reads the values of this field in short messages.

    All are read into one message, whose memory is enough for the next one: after some thousand messages that were freed
    protobuf calls malloc_trim, and the next large request would be copied into fresh memory.
    """
    from google.protobuf.message import DecodeError  # here, because protobuf is an optional dependency

    from tsctl.daemon.extensions.grpc.protos.messages import message_class

    message = message_class("inference.InferTensorContents")()
    values = getattr(message, field)

    def read(written: bytes) -> list[Any]:
        del values[:]
        try:
            message.MergeFromString(written)
        except DecodeError:
            raise BadRequest("a number is malformed.") from None
        return list(values)

    return read


def _parameters(written: Any) -> Parameters:
    found: Parameters = {}
    if not len(written):
        return found
    if len(written) > MOST_PARAMETERS:
        raise BadRequest(f"The message has {len(written)} parameters in one place; at most {MOST_PARAMETERS} are read.")
    for name, value in sorted(written.items()):  # a map has no order on the wire, and caches hash the request
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
    large = type(value) is int and value >= 2**63
    setattr(message, "uint64_param" if large else kinds[type(value)], value)
