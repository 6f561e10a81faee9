"""Inference requests of the Open Inference Protocol over HTTP: JSON, or JSON and the tensors' bytes after it.

With the binary extension (Triton's, "binary tensor data extension") the header `Inference-Header-Content-Length` is the
length of the JSON; an input with the parameter `binary_data_size` has as many bytes after it, in the inputs' order.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from daemon.api.tensors.forms import InferRequest, Parameters, Tensor, WantedOutput
from daemon.api.tensors.json_data import pack_steps
from daemon.api.tensors.sizes import check_steps
from daemon.api.tensors.steps import Steps, finish
from daemon.core.arena import Lease, Payload
from daemon.core.errors import BadRequest
from daemon.model_settings.declarations import LONGEST_NAME, MOST_TENSORS

SIZE, BINARY, ALL_BINARY = "binary_data_size", "binary_data", "binary_data_output"  # parameters of the extension
# Parameters of extensions that are not served, and without which a tensor is not the one that is meant.
_OF_INPUTS = {"shared_memory_region": "shared memory: send the tensor in the request"}
_OF_OUTPUTS = {
    "shared_memory_region": "shared memory: read the tensor from the answer",
    "classification": "classification: choose the classes from the output",
}
_SHOWN = 100  # characters of a value in a message

RawParameters = dict[str, bool | int | float | str] | None
Name = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
# 64 bits with a sign: frames, gRPC and NumPy hold no more.
Dimension = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class WrittenTensor(msgspec.Struct):
    """One tensor in JSON; without `data` if its bytes follow."""

    name: Name
    shape: list[Dimension]
    datatype: str
    parameters: RawParameters = None
    data: msgspec.Raw = msgspec.Raw()

    @property
    def has_data(self) -> bool:
        return bytes(memoryview(self.data)[:4]) not in (b"", b"null")


class _WrittenOutput(msgspec.Struct):
    name: Name
    parameters: RawParameters = None


class _WrittenRequest(msgspec.Struct):
    inputs: list[WrittenTensor]
    id: str | None = None
    parameters: RawParameters = None
    outputs: list[_WrittenOutput] | None = None


_decode = msgspec.json.Decoder(_WrittenRequest).decode


def parse_request(body: Payload, head_length: int | None = None) -> InferRequest:
    """Parse a request all at once; as `parse_steps`."""
    return finish(parse_steps(body, head_length))


def parse_steps(body: Payload, head_length: int | None = None) -> Steps[InferRequest]:
    """Parse a request in steps; the bytes of its tensors stay in the arena, if that is where they are.

    Args:
        head_length: bytes of its JSON; None if it is JSON as a whole.

    Raises:
        BadRequest: the request is malformed, an input is there twice, or a tensor's elements are not what its
            datatype and shape say.
    """
    if head_length is not None and not 0 <= head_length <= len(body):
        raise BadRequest(f"The request's JSON is said to have {head_length} bytes; the body has {len(body)}.")
    view = body.view if isinstance(body, Lease) else memoryview(body)
    try:
        written = _decode(view if head_length is None else view[:head_length])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"The body is no inference request in JSON: {error}") from None
    if len(written.inputs) > MOST_TENSORS:
        raise BadRequest(f"The request has {len(written.inputs)} inputs; at most {MOST_TENSORS} are read.")
    binary = _truth("the request", written.parameters, ALL_BINARY)
    inputs, at = [], len(body) if head_length is None else head_length
    seen: set[str] = set()
    for each in written.inputs:
        if each.name in seen:
            raise BadRequest(f"Input {each.name} is given twice; send each input once.")
        seen.add(each.name)
        _check_served(f"Input {each.name}", each.parameters, _OF_INPUTS)
        tensor, at = yield from tensor_steps(f"input {each.name}", each, body, at)
        inputs.append(tensor)
    if at != len(body):
        raise BadRequest(
            f"{len(body) - at} bytes follow the last input's; `{SIZE}` of the inputs says how many there are."
        )
    outputs = [_wanted(each, binary) for each in written.outputs or ()]
    parameters = read_parameters("the request", written.parameters, ALL_BINARY)
    return InferRequest(written.id or "", parameters, inputs, outputs, binary)


def tensor_steps(what: str, written: WrittenTensor, body: Payload, at: int) -> Steps[tuple[Tensor, int]]:
    """Return, in steps, a tensor, and where the bytes of the next one begin.

    Args:
        what: the tensor, for a sentence: "input INPUT0".
        at: where its bytes begin, if it has any after the JSON.

    Raises:
        BadRequest: its elements are missing, or not what its datatype and shape say.
    """
    size = (written.parameters or {}).get(SIZE)
    shape = tuple(written.shape)
    data: Payload
    if size is None:
        if not written.has_data:
            raise BadRequest(f"The {what} has neither `data` nor the parameter `{SIZE}`.")
        data = yield from pack_steps(what, written.datatype, shape, written.data)
    else:
        if type(size) is not int or size < 0:
            raise BadRequest(f"`{SIZE}` of {what} is {_shown(size)}; expected a number of bytes.")
        if written.has_data:
            raise BadRequest(f"The {what} has both `data` and the parameter `{SIZE}`.")
        if at + size > len(body):
            raise BadRequest(
                f"`{SIZE}` of {what} is {_shown(size)}, but only {len(body) - at} bytes are left in the body."
            )
        data = _part(body, at, at + size)
        at += size
        yield from check_steps(what, written.datatype, shape, data)
    return Tensor(written.name, written.datatype, shape, data, read_parameters(what, written.parameters, SIZE)), at


def read_parameters(what: str, parameters: RawParameters, without: str | None = None) -> Parameters:
    """Return the parameters of a request, an answer or a tensor.

    Args:
        what: the thing that has them, for a sentence: "input INPUT0".
        without: a parameter to leave out; None for none.

    Raises:
        BadRequest: a parameter is a number that 64 bits cannot hold.
    """
    for name, value in (parameters or {}).items():
        if type(value) is int and not -(2**63) <= value < 2**64:
            raise BadRequest(f"The parameter {name[:_SHOWN]} of {what} is a whole number of more than 64 bits.")
    return {name: value for name, value in (parameters or {}).items() if name != without}


def _part(body: Payload, start: int, end: int) -> Payload:
    if isinstance(body, bytes):
        return body[start:end]
    return body.part(start, end) if start < end else b""  # a place in the arena has at least one byte


def _wanted(output: _WrittenOutput, binary: bool) -> WantedOutput:
    what = f"output {output.name}"
    _check_served(f"Output {output.name}", output.parameters, _OF_OUTPUTS)
    chosen = _truth(what, output.parameters, BINARY, binary)
    return WantedOutput(output.name, chosen, read_parameters(what, output.parameters, BINARY))


def _check_served(what: str, parameters: RawParameters, refused: Mapping[str, str]) -> None:
    for name, sentence in refused.items():
        if name in (parameters or {}):
            raise BadRequest(f"{what} has the parameter `{name}`; tsctl does not serve {sentence}.")


def _truth(what: str, parameters: RawParameters, name: str, default: bool = False) -> bool:
    value = (parameters or {}).get(name, default)
    if type(value) is not bool:
        raise BadRequest(f"`{name}` of {what} is {_shown(value)}; expected true or false.")
    return value


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
